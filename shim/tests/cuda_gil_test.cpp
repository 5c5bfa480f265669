// A free may come with the GIL in hand, and must not wait for the device then. To record an event
// does, where a stream has all the work that it can take.
#include "../include/gpushare.h"
#include "../src/api.h"
#include "../src/runtime.h"
#include "check.h"
#include "fake_cuda/fake_cuda.h"

namespace {
thread_local int held = 0, released = 0;
}

// Of Python the shim knows these by name.
extern "C" {
#define EXPORTED __attribute__((visibility("default")))
EXPORTED int Py_IsInitialized() { return 1; }
EXPORTED int PyGILState_Check() { return held; }
EXPORTED void* PyEval_SaveThread() {
  held = 0;
  ++released;
  return &held;
}
EXPORTED void PyEval_RestoreThread(void*) { held = 1; }
}

namespace {

constexpr uint64_t kMiB = 1 << 20;

uint64_t events(gs_account job) { return gpushare::active()->governor().fences().events(job); }

gs_account start() {
  fake_cuda_reset(1);
  gs_config c{64 * kMiB, 2 * kMiB, 16 * kMiB, 0, GS_UNMANAGED,      -1, 0,
              -1,        0,        GS_CUDA,   0, GPUSHARE_FAKE_CUDA};
  CHECK(gs_start(&c) == 0);
  return gs_job_begin(0, 0);
}

void* block(gs_account job, uint64_t bytes = 4 * kMiB) {  // four batches of this budget
  void* made = gs_try_alloc(bytes, 0, job, 0, 0);
  CHECK(made);
  return made;
}

void a_free_with_the_gil_records_nothing(gs_account job) {
  void* first = block(job);
  void* second = block(job);
  uint64_t before = events(job);
  gs_free(first, 0, 0);
  CHECK(events(job) > before);  // a batch is full
  before = events(job);
  held = 1;
  gs_free(second, 0, 0);
  void* third = block(job, kMiB / 16);
  CHECK(events(job) == before && held == 1);
  held = 0;
  void* fourth = block(job, kMiB / 16);  // the next allocation without it does what was left
  CHECK(events(job) > before);
  gs_free(third, 0, 0);
  gs_free(fourth, 0, 0);
}

void what_is_taken_again_needs_no_event(gs_account job) {
  void* first = block(job);
  uint64_t before = events(job);
  held = 1;
  gs_free(first, 0, 0);
  held = 0;
  void* second = block(job);
  CHECK(second == first && events(job) == before);
  gs_free(second, 0, 0);
  CHECK(events(job) > before);
}

// An event may be recorded for a wait on the device, which the driver may keep a thread for. One
// page is mapped, so it is not for the mappings.
void what_another_job_uses_is_waited_for_without_the_gil(gs_account job) {
  gs_account other = gs_job_begin(0, 0);
  gs_stream side = gs_side_stream(other, 0);
  void* first = gs_try_alloc(60 * kMiB, 0, other, side, 0);
  CHECK(first);
  auto at = reinterpret_cast<uint64_t>(first);
  CHECK(fake_cuda_launch_write(reinterpret_cast<void*>(side), at, 60 * kMiB, 1) == 0);
  gs_free(first, 0, side);
  void* free_before = block(job, 4 * kMiB);  // what nobody uses comes first
  held = 1, released = 0;
  void* second = block(job, 2 * kMiB);
  CHECK(held == 1 && released == 1);
  held = 0;
  gs_free(free_before, 0, 0);
  gs_free(second, 0, 0);
  gs_job_end(other);
}

// The driver is called for each page. That all jobs' Python would wait for.
void much_memory_is_mapped_without_the_gil(gs_account job) {
  held = 1, released = 0;
  void* few = block(job, 4 * kMiB);
  CHECK(held == 1 && released == 0);
  void* many = block(job, 20 * kMiB);
  CHECK(held == 1 && released == 1);
  held = 0;
  gs_free(few, 0, 0);
  gs_free(many, 0, 0);
}

}  // namespace

int main() {
  gs_account job = start();
  much_memory_is_mapped_without_the_gil(job);
  a_free_with_the_gil_records_nothing(job);
  what_is_taken_again_needs_no_event(job);
  what_another_job_uses_is_waited_for_without_the_gil(job);
  puts("cuda gil: ok");
}
