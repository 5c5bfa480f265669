// What tests tell and ask.
#include <unistd.h>

#include <bit>
#include <cstdio>
#include <cstdlib>

#include "machine.h"

using namespace gpushare::fake_cuda;

namespace {

int launch(Operation::Kind kind, void* stream, CUdeviceptr address, size_t bytes, uint64_t tag,
           uint64_t duration) {
  Locked machine;
  return machine->issue(static_cast<CUstream>(stream),
                        {kind, address, bytes, tag, nullptr, duration});
}

// A copy that stays when another thread writes the next one.
const char* keep(const std::string& text) {
  static thread_local std::string kept;
  kept = text;
  return kept.c_str();
}

}  // namespace

void fake_cuda_reset(uint64_t seed) { Locked().replace(seed); }

void fake_cuda_set_granularity(size_t bytes) {
  if (!std::has_single_bit(bytes) || bytes < static_cast<size_t>(sysconf(_SC_PAGESIZE))) {
    fprintf(stderr, "granularity must be a power of two and at least a page, but got %zu\n", bytes);
    abort();
  }
  Locked()->memory.granularity = bytes;
}

void fake_cuda_set_memory(size_t bytes) { Locked()->memory.total = bytes; }

void fake_cuda_take(size_t bytes) { Locked()->memory.taken = bytes; }

void fake_cuda_set_host_access(int allowed) { Locked()->memory.host_access = allowed; }

int fake_cuda_launch_write(void* stream, unsigned long long address, size_t bytes, uint64_t tag) {
  return fake_cuda_launch_write_for(stream, address, bytes, tag, 1);
}

int fake_cuda_launch_read(void* stream, unsigned long long address, size_t bytes, uint64_t tag) {
  return fake_cuda_launch_read_for(stream, address, bytes, tag, 1);
}

int fake_cuda_launch_write_for(void* stream, unsigned long long address, size_t bytes, uint64_t tag,
                               uint64_t duration) {
  return launch(Operation::kWrite, stream, address, bytes, tag, duration);
}

int fake_cuda_launch_read_for(void* stream, unsigned long long address, size_t bytes, uint64_t tag,
                              uint64_t duration) {
  return launch(Operation::kRead, stream, address, bytes, tag, duration);
}

size_t fake_cuda_run(size_t operations) { return Locked()->streams.run(operations); }

size_t fake_cuda_run_all(void) { return fake_cuda_run(SIZE_MAX); }

int fake_cuda_hold(void* stream, int held) {
  Locked machine;
  uint64_t id;
  StreamState* state = machine->streams.find(static_cast<CUstream>(stream), &id);
  if (state) state->held = held;
  return state ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

uint64_t fake_cuda_pending(void* stream) {
  Locked machine;
  uint64_t id;
  StreamState* state = machine->streams.find(static_cast<CUstream>(stream), &id);
  return state ? state->queue.size() : 0;
}

void fake_cuda_waits_for_memory(int so) { Locked()->events.waits_for_memory = so != 0; }
uint64_t fake_cuda_ideal_time(void) { return Locked()->streams.ideal_time(); }
void fake_cuda_reuse_handles(int reuse) { Locked()->streams.reuse_handles = reuse != 0; }
void fake_cuda_set_issue_time(uint64_t time) { Locked()->streams.issue_time = time; }

uint64_t fake_cuda_device_time(void) { return Locked()->streams.device_time(); }

fake_cuda_counters fake_cuda_read_counters(void) { return Locked()->report.counters; }

uint64_t fake_cuda_calls(const char* entry_point) {
  EntryPoint e;
  if (!find_entry_point(entry_point, &e)) return 0;
  return Locked()->report.counters.calls[static_cast<unsigned>(e)];
}

void fake_cuda_expect_misuse(const char* part) { Locked()->report.expected.emplace_back(part); }

const char* fake_cuda_last_misuse(void) { return keep(Locked()->report.last_misuse); }

const char* fake_cuda_last_wrong_read(void) { return keep(Locked()->report.last_wrong_read); }

int fake_cuda_fail(const char* entry_point, uint64_t nth, int result) {
  EntryPoint e;
  if (!find_entry_point(entry_point, &e)) return 0;
  Locked()->faults.order(e, nth, static_cast<CUresult>(result));
  return 1;
}

const char* const* fake_cuda_entry_points(void) { return entry_point_names(); }
