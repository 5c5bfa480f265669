#include "telemetry.h"

#include <sys/mman.h>

#include "clock.h"

namespace gpushare {

bool Telemetry::open(int fd) {
  int flags = fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
  void* p = mmap(nullptr, kTelemetryBytes, PROT_READ | PROT_WRITE, flags, fd, 0);
  if (p == MAP_FAILED) return false;
  words_ = static_cast<uint64_t*>(p);
  header(kVersion, kTelemetryVersion);
  header(kRingSize, kRingEntries);
  header(kStartNs, now_ns());
  return true;
}

void Telemetry::close() {
  if (words_) munmap(words_, kTelemetryBytes);
  words_ = nullptr;
}

void Telemetry::event(uint32_t account, EventKind kind, uint64_t value, uint64_t time_ns) {
  uint64_t head = slot(account, kRingHead);
  uint64_t rings = (kHeaderBytes + kAccounts * kSlotBytes) / 8;
  uint64_t* entry = words_ + rings + (account * kRingEntries + head % kRingEntries) * 4;
  store(entry, 0);  // a reader that sees 0, or another number than it expects, skips the entry
  // None of these may be seen before that.
  __atomic_store_n(entry + 1, time_ns, __ATOMIC_RELEASE);
  __atomic_store_n(entry + 2, uint64_t{kind}, __ATOMIC_RELEASE);
  __atomic_store_n(entry + 3, value, __ATOMIC_RELEASE);
  __atomic_store_n(entry, head + 1, __ATOMIC_RELEASE);
  slot(account, kRingHead, head + 1);
}

void Telemetry::wake(uint32_t account, uint64_t latency_ns, uint64_t gil_ns) {
  raise(account, kLongestWakeNs, latency_ns + gil_ns);
  uint64_t n = header(kWakes);
  uint64_t* entry = words_ + kWakesAt / 8 + n % kWakeEntries * 2;
  store(entry, latency_ns);
  store(entry + 1, gil_ns);
  header(kWakes, n + 1);
}

void Telemetry::gil_wait(uint32_t account, uint64_t ns) {
  add(account, kGilWaitNs, ns);
  uint64_t state = slot(account, kState);
  if (state == kSetUp || state == kAlone) add(account, kGilWaitBeforeNs, ns);
}

}  // namespace gpushare
