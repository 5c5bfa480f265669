// The C API: a job's side streams, and waiting for what a job has issued and for nothing else.
#include <cstdint>
#include <cstring>
#include <set>

#include "../include/gpushare.h"
#include "../src/devices/cuda_driver.h"
#include "../src/streams.h"
#include "check.h"
#include "fake_cuda/fake_cuda.h"

namespace {

using namespace gpushare::cuda;
using gpushare::SideStreams;

constexpr uint64_t kMiB = 1 << 20;

const Driver& driver() {
  static const Driver loaded{GPUSHARE_FAKE_CUDA};
  return loaded;
}

void* pointer(gs_stream stream) { return reinterpret_cast<void*>(stream); }
uint64_t pending() { return fake_cuda_read_counters().pending; }

gs_account start() {
  static bool started = false;
  if (!started) {
    fake_cuda_reset(1);
    gs_config c{64 * kMiB, 2 * kMiB, 16 * kMiB, 0, GS_UNMANAGED,      -1, 0,
                -1,        0,        GS_CUDA,   0, GPUSHARE_FAKE_CUDA};
    CHECK(gs_start(&c) == 0);
    started = true;
  }
  return gs_job_begin(0, 0);
}

void issue(gs_account job, gs_stream stream) {
  auto* block = static_cast<char*>(gs_try_alloc(kMiB, 0, job, stream, 0));
  CHECK(block);
  CHECK(fake_cuda_launch_write(pointer(stream), reinterpret_cast<uint64_t>(block), kMiB, 7) == 0);
  gs_free(block, 0, stream);
}

void each_job_has_its_own() {
  gs_account one = start(), other = start();
  std::set<gs_stream> seen;
  for (gs_account job : {one, other}) {
    gs_stream first = gs_side_stream(job, 0);
    CHECK(first && gs_stream_account(first) == job);
    CHECK(seen.insert(first).second);
    for (size_t n = 1; n < SideStreams::kOfAPriority; ++n)
      CHECK(seen.insert(gs_side_stream(job, 0)).second);
    CHECK(gs_side_stream(job, 0) == first);  // in turn from here on
    gs_stream urgent = gs_side_stream(job, -1);
    CHECK(seen.insert(urgent).second);
    // What is beyond torch's priorities is its nearest one.
    CHECK(!seen.count(gs_side_stream(job, SideStreams::kMostUrgent)));
    CHECK(seen.count(gs_side_stream(job, 5)));
  }
  CHECK(gs_side_stream(0, 0) == 0);
  CHECK(strstr(gs_last_error(), "no job"));
  gs_job_end(one);
  gs_job_end(other);
}

void a_wait_is_for_the_jobs_own_work() {
  gs_account one = start(), other = start();
  gs_stream main = gs_side_stream(one, 0), side = gs_side_stream(one, 0);
  gs_stream held = gs_side_stream(other, 0);
  fake_cuda_run_all();
  issue(other, held);
  CHECK(fake_cuda_hold(pointer(held), 1) == 0);
  uint64_t before = pending();
  CHECK(before > 0);
  issue(one, main);
  issue(one, side);
  CHECK(pending() > before);
  CHECK(gs_synchronize(one) == 0);
  CHECK(pending() == before);
  CHECK(fake_cuda_hold(pointer(held), 0) == 0);
  CHECK(gs_synchronize(other) == 0);
  CHECK(pending() == 0);
  gs_job_end(one);
  gs_job_end(other);
}

// A blocking stream comes after the legacy stream's earlier work, and so does an event on it.
void what_lies_on_the_legacy_stream_is_waited_for() {
  gs_account job = start();
  CUstream blocking = nullptr;
  driver().check(driver().cuStreamCreate(&blocking, CU_STREAM_DEFAULT), "cuStreamCreate");
  auto stream = reinterpret_cast<gs_stream>(blocking);
  gs_stream_begin(job, stream);
  fake_cuda_run_all();
  issue(job, 0);
  CHECK(pending() > 0);
  CHECK(gs_synchronize(job) == 0);
  CHECK(pending() == 0);
  gs_job_end(job);
}

// A block may live on when its stream is gone, and another stream come to have the same handle.
// What uses the block there is not what allocated it.
void a_handle_that_comes_again_is_another_stream() {
  constexpr uint64_t kBytes = 48 * kMiB;  // of which there is no other in the pool
  gs_account one = start(), other = start();
  fake_cuda_run_all();
  fake_cuda_reuse_handles(1);
  CUstream old = nullptr, again = nullptr, others = nullptr;
  auto number = [](CUstream s) { return reinterpret_cast<gs_stream>(s); };
  driver().check(driver().cuStreamCreate(&old, CU_STREAM_DEFAULT), "cuStreamCreate");
  void* block = gs_try_alloc(kBytes, 0, one, number(old), 0);
  CHECK(block);
  gs_stream_end(number(old));
  driver().check(driver().cuStreamDestroy_v2(old), "cuStreamDestroy_v2");
  driver().check(driver().cuStreamCreate(&again, CU_STREAM_DEFAULT), "cuStreamCreate");
  driver().check(driver().cuStreamCreate(&others, CU_STREAM_DEFAULT), "cuStreamCreate");
  CHECK(again == old);
  auto address = reinterpret_cast<uint64_t>(block);
  CHECK(fake_cuda_launch_write(again, address, kBytes, 7) == 0);
  CHECK(fake_cuda_launch_read(again, address, kBytes, 7) == 0);
  CHECK(gs_record_stream(block, number(again)) == 0);
  CHECK(fake_cuda_hold(again, 1) == 0);
  gs_free(block, 0, number(again));
  gs_trim(one);
  void* theirs = gs_try_alloc(kBytes, 0, other, number(others), 0);
  CHECK(theirs);
  CHECK(fake_cuda_launch_write(others, reinterpret_cast<uint64_t>(theirs), kBytes, 8) == 0);
  fake_cuda_run_all();
  CHECK(fake_cuda_pending(others) > 0);  // behind what is held
  CHECK(fake_cuda_hold(again, 0) == 0);
  fake_cuda_run_all();
  CHECK(fake_cuda_read_counters().wrong_reads == 0);
  gs_free(theirs, 0, number(others));
  gs_job_end(one);
  gs_job_end(other);
  fake_cuda_reuse_handles(0);
}

void what_fails_is_told() {
  gs_account job = start();
  gs_stream stream = gs_side_stream(job, 0);
  issue(job, stream);
  for (uint64_t nth = 1; nth <= 8; ++nth)
    fake_cuda_fail("cuEventSynchronize", nth, CUDA_ERROR_ILLEGAL_ADDRESS);
  CHECK(gs_synchronize(job) == -1);
  CHECK(strstr(gs_last_error(), "cuEventSynchronize"));
  for (int n = 0; n < 8; ++n) gs_synchronize(job);
  fake_cuda_fail("cuStreamCreateWithPriority", 1, CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(gs_side_stream(job, 0) == 0);
  CHECK(strstr(gs_last_error(), "cuStreamCreateWithPriority"));
  CHECK(gs_side_stream(job, 0) != 0);
  gs_job_end(job);
}

}  // namespace

int main() {
  each_job_has_its_own();
  a_wait_is_for_the_jobs_own_work();
  what_lies_on_the_legacy_stream_is_waited_for();
  a_handle_that_comes_again_is_another_stream();
  what_fails_is_told();
  CHECK(gs_check() == 0);
  CHECK(fake_cuda_read_counters().misuses == 0);
  return 0;
}
