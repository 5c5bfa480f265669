#include "trace.h"

#include <unordered_map>

#include "clock.h"

namespace gpushare {

void Trace::start(uint64_t live_bytes) {
  std::lock_guard lock(mutex_);
  events_.clear();
  live_at_start_ = live_bytes;
  started_ns_ = now_ns();
}

void Trace::allocated(const void* address, uint64_t bytes, uint64_t stream) {
  std::lock_guard lock(mutex_);
  if (events_.size() >= kMost) return;
  events_.push_back({address, static_cast<int64_t>(bytes), now_ns(), stream});
}

void Trace::freed(const void* address, uint64_t bytes, uint64_t stream) {
  std::lock_guard lock(mutex_);
  if (events_.size() >= kMost) return;
  events_.push_back({address, -static_cast<int64_t>(bytes), now_ns(), stream});
}

PeakKinds Trace::finish() {
  std::lock_guard lock(mutex_);
  int64_t live = static_cast<int64_t>(live_at_start_), most = live;
  size_t peak = 0;  // events before the peak
  for (size_t i = 0; i < events_.size(); ++i)
    if ((live += events_[i].bytes) > most) most = live, peak = i + 1;

  PeakKinds kinds;
  std::unordered_map<const void*, size_t> born;  // allocated in this iteration, alive
  std::vector<size_t> place(events_.size());     // of an allocation, among the allocations
  made_.clear();
  int64_t older = static_cast<int64_t>(live_at_start_);
  for (size_t i = 0; i < events_.size(); ++i) {
    Event& e = events_[i];
    if (e.bytes > 0) {
      e.kind = Kind::kPersistent;
      born[e.address] = i;
      place[i] = made_.size();
      made_.push_back({static_cast<uint64_t>(e.bytes), true});
      continue;
    }
    auto it = born.find(e.address);
    if (it == born.end()) {
      if (i < peak) older += e.bytes;
      continue;
    }
    bool at_peak = it->second < peak && i >= peak;
    uint64_t bytes = static_cast<uint64_t>(-e.bytes);
    bool temporary = i - it->second <= kTemporarySpan;
    if (at_peak) (temporary ? kinds.temporary : kinds.activation) += bytes;
    events_[it->second].kind = temporary ? Kind::kTemporary : Kind::kActivation;
    made_[place[it->second]].persistent = false;
    born.erase(it);
  }
  for (auto [address, i] : born)
    if (i < peak) kinds.persistent += static_cast<uint64_t>(events_[i].bytes);
  kinds.persistent += static_cast<uint64_t>(older > 0 ? older : 0);
  return kinds;
}

std::vector<LogRecord> Trace::take_log(uint32_t account, uint64_t iteration) {
  std::lock_guard lock(mutex_);
  std::vector<LogRecord> log;
  log.reserve(events_.size() + 2);
  auto add = [&](uint64_t time_ns, const Event& e, Logged what) {
    auto bytes = e.bytes > 0 ? static_cast<uint64_t>(e.bytes) : 0;
    log.push_back({time_ns, reinterpret_cast<uint64_t>(e.address), bytes, e.stream,
                   static_cast<uint32_t>(iteration), static_cast<uint8_t>(account), what, e.kind});
  };
  add(started_ns_, {}, Logged::kIterationOpened);
  for (const Event& e : events_)
    add(e.time_ns, e, e.bytes > 0 ? Logged::kAllocated : Logged::kFreed);
  add(now_ns(), {}, Logged::kIterationClosed);
  events_ = {};
  return log;
}

}  // namespace gpushare
