// What an extension asks the CUDA runtime for, in a thread of a job and elsewhere.
#include <dlfcn.h>

#include <cstdint>
#include <thread>

#include "../include/gpushare.h"
#include "../src/devices/cuda_driver.h"
#include "check.h"
#include "fake_cuda/fake_cuda.h"

extern "C" {
int cudaDeviceSynchronize();
int cudaMemGetInfo(size_t* free, size_t* total);
int cudaStreamCreate(void** stream);
int cudaStreamCreateWithFlags(void** stream, unsigned flags);
int cudaStreamCreateWithPriority(void** stream, unsigned flags, int priority);
int cudaStreamDestroy(void* stream);
}

namespace {

using namespace gpushare::cuda;

constexpr uint64_t kMiB = 1 << 20, kBudget = 64 * kMiB;
constexpr int kNoSuchSymbol = 302;

struct FakeRuntime {
  void* library = dlopen(GPUSHARE_FAKE_CUDA_RUNTIME, RTLD_NOW | RTLD_GLOBAL);
  int& waits = count("fake_runtime_waits");
  int& made = count("fake_runtime_made");
  int& destroyed = count("fake_runtime_destroyed");
  int& count(const char* name) { return *static_cast<int*>(dlsym(library, name)); }
};

const Driver& driver() {
  static const Driver loaded{GPUSHARE_FAKE_CUDA};
  return loaded;
}

gs_stream number(void* stream) { return reinterpret_cast<gs_stream>(stream); }
CUstream pointer(gs_stream stream) { return reinterpret_cast<CUstream>(stream); }
uint64_t pending() { return fake_cuda_read_counters().pending; }

struct Job {
  gs_account account = gs_job_begin(0, 0);
  gs_stream stream = 0;
  Job() {
    CUstream made = nullptr;
    driver().check(driver().cuStreamCreate(&made, CU_STREAM_DEFAULT), "cuStreamCreate");
    stream = number(made);
    gs_stream_begin(account, stream);
  }
  ~Job() { gs_job_end(account); }
  template <typename Body>
  void does(Body body) {
    gs_thread_enter(account, nullptr);
    gs_thread_cuda_stream(stream);
    body();
    gs_thread_cuda_stream(0);
    gs_thread_leave();
  }
  void* allocate(uint64_t bytes) const {
    void* block = gs_try_alloc(bytes, 0, account, stream, 0);
    CHECK(block);
    return block;
  }
  void free(void* block) const { gs_free(block, 0, stream); }
};

void write(gs_stream stream, void* block, uint64_t bytes, uint64_t value) {
  CHECK(fake_cuda_launch_write(pointer(stream), reinterpret_cast<uint64_t>(block), bytes, value) ==
        0);
}
void read(gs_stream stream, void* block, uint64_t bytes, uint64_t value) {
  CHECK(fake_cuda_launch_read(pointer(stream), reinterpret_cast<uint64_t>(block), bytes, value) ==
        0);
}

void without_a_runtime_it_says_so() {
  void* stream = nullptr;
  CHECK(cudaDeviceSynchronize() == kNoSuchSymbol);
  CHECK(cudaStreamCreate(&stream) == kNoSuchSymbol);
  size_t bytes = 0;
  CHECK(cudaMemGetInfo(&bytes, &bytes) == kNoSuchSymbol);
}

void outside_jobs_the_runtime_answers(FakeRuntime& runtime) {
  int made = runtime.made, destroyed = runtime.destroyed, waits = runtime.waits;
  void *one = nullptr, *other = nullptr, *third = nullptr;
  CHECK(cudaStreamCreate(&one) == 0);
  CHECK(cudaStreamCreateWithFlags(&other, CU_STREAM_NON_BLOCKING) == 0);
  CHECK(cudaStreamCreateWithPriority(&third, CU_STREAM_DEFAULT, 0) == 0);
  CHECK(runtime.made == made + 3 && one != other && other != third);
  CHECK(gs_stream_account(number(other)) == GS_SHARED);
  CHECK(cudaDeviceSynchronize() == 0 && runtime.waits == waits + 1);
  for (void* stream : {one, other, third}) CHECK(cudaStreamDestroy(stream) == 0);
  CHECK(runtime.destroyed == destroyed + 3);
}

void a_job_waits_for_its_own_work(FakeRuntime& runtime) {
  Job one, other;
  int waits = runtime.waits;
  void* theirs = other.allocate(kMiB);
  CHECK(fake_cuda_hold(pointer(other.stream), 1) == 0);
  write(other.stream, theirs, kMiB, 1);
  uint64_t before = pending();
  void* block = one.allocate(kMiB);
  write(one.stream, block, kMiB, 2);
  one.does([] { CHECK(cudaDeviceSynchronize() == 0); });
  CHECK(pending() == before && runtime.waits == waits);
  CHECK(fake_cuda_hold(pointer(other.stream), 0) == 0);
  CHECK(cudaDeviceSynchronize() == 0);
  CHECK(pending() == 0 && runtime.waits == waits + 1);
  one.free(block), other.free(theirs);
}

// Whoever waits for the whole device breaks it, in whichever thread and mode.
void a_capture_bears_the_wait_of_another_job() {
  Job one, other;
  gs_stream captured = gs_side_stream(one.account, 0);
  const Driver& d = driver();
  for (bool in_job : {true, false}) {
    d.check(d.cuStreamBeginCapture_v2(pointer(captured), CU_STREAM_CAPTURE_MODE_THREAD_LOCAL), "");
    auto wait = [&] {
      if (in_job)
        other.does([] { CHECK(cudaDeviceSynchronize() == 0); });
      else
        cudaDeviceSynchronize();
    };
    std::thread(wait).join();
    CUgraph graph = nullptr;
    CHECK((d.cuStreamEndCapture(pointer(captured), &graph) == CUDA_SUCCESS) == in_job);
  }
}

// As alone it is refused, and the capture lost; but no other job's.
void a_job_may_not_wait_within_its_own_capture(FakeRuntime& runtime) {
  Job one, other;
  int waits = runtime.waits;
  gs_stream mine = gs_side_stream(one.account, 0), theirs = gs_side_stream(other.account, 0);
  const Driver& d = driver();
  for (gs_stream s : {mine, theirs})
    d.check(d.cuStreamBeginCapture_v2(pointer(s), CU_STREAM_CAPTURE_MODE_THREAD_LOCAL), "");
  one.does([] { CHECK(cudaDeviceSynchronize() == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED); });
  CHECK(runtime.waits == waits);
  CUgraph graph = nullptr;
  CHECK(d.cuStreamEndCapture(pointer(mine), &graph) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  CHECK(d.cuStreamEndCapture(pointer(theirs), &graph) == CUDA_SUCCESS);
  one.does([] { CHECK(cudaDeviceSynchronize() == 0); });
}

void memory_is_that_of_the_budget() {
  Job one, other;
  size_t free = 0, total = 0, before = 0;
  void* theirs = other.allocate(20 * kMiB);
  one.does([&] { CHECK(cudaMemGetInfo(&before, &total) == 0 && total == kBudget); });
  void* block = one.allocate(20 * kMiB);
  one.does([&] { CHECK(cudaMemGetInfo(&free, &total) == 0); });
  CHECK(before - free >= 20 * kMiB && free < kBudget);
  gs_limit_set(one.account, 8 * kMiB);
  one.does([&] {
    CHECK(cudaMemGetInfo(&free, &total) == 0 && free == 0);
    CHECK(cudaMemGetInfo(nullptr, &total) == 1);
  });
  CHECK(cudaMemGetInfo(&free, &total) == 0 && total == 1024 * kMiB);  // as the runtime says
  one.free(block), other.free(theirs);
}

// What is on a blocking stream waits for what is on the default one, and that for it.
void order_is_kept_on_blocking_streams(FakeRuntime& runtime) {
  constexpr uint64_t kBytes = 40 * kMiB;  // of which there is no other in the pool
  Job one, other;
  int made = runtime.made, destroyed = runtime.destroyed;
  void *first = nullptr, *second = nullptr, *third = nullptr;
  one.does([&] {
    CHECK(cudaStreamCreate(&first) == 0);
    CHECK(cudaStreamCreateWithFlags(&second, CU_STREAM_DEFAULT) == 0);
    CHECK(cudaStreamCreateWithPriority(&third, CU_STREAM_DEFAULT, 0) == 0);
    CHECK(cudaStreamCreate(nullptr) != 0);  // as the runtime says
  });
  for (void* stream : {first, second, third}) {
    void* block = one.allocate(kBytes);
    write(one.stream, block, kBytes, 3);
    read(number(stream), block, kBytes, 3);
    one.free(block);
    block = one.allocate(kBytes);
    write(one.stream, block, kBytes, 4);
    one.free(block);
    block = other.allocate(kBytes);
    write(other.stream, block, kBytes, 5);
    other.free(block);
    fake_cuda_run_all();
    CHECK(cudaStreamDestroy(stream) == 0);
  }
  CHECK(fake_cuda_read_counters().wrong_reads == 0);
  CHECK(runtime.made == made + 1 && runtime.destroyed == destroyed);  // one was refused
}

void what_is_freed_may_be_in_use_on_a_stream_of_a_library(FakeRuntime& runtime) {
  constexpr uint64_t kBytes = 40 * kMiB;
  Job one, other;
  for (bool destroyed_first : {false, true}) {
    int destroyed = runtime.destroyed;
    void* side = nullptr;
    one.does([&] { CHECK(cudaStreamCreateWithFlags(&side, CU_STREAM_NON_BLOCKING) == 0); });
    CHECK(number(side) != one.stream && gs_stream_account(number(side)) == one.account);
    void* block = one.allocate(kBytes);
    write(number(side), block, kBytes, 6);
    CHECK(fake_cuda_hold(pointer(number(side)), 1) == 0);
    read(number(side), block, kBytes, 6);
    if (destroyed_first) {
      CHECK(fake_cuda_hold(pointer(number(side)), 0) == 0);
      CHECK(cudaStreamDestroy(side) == 0);
    }
    one.free(block);
    gs_trim(one.account);
    block = other.allocate(kBytes);
    write(other.stream, block, kBytes, 7);
    fake_cuda_run_all();
    if (!destroyed_first) {
      CHECK(fake_cuda_pending(pointer(other.stream)) > 0);  // behind what is held
      CHECK(fake_cuda_hold(pointer(number(side)), 0) == 0);
      CHECK(cudaStreamDestroy(side) == 0);
    }
    fake_cuda_run_all();
    CHECK(fake_cuda_read_counters().wrong_reads == 0);
    CHECK(gs_stream_account(number(side)) == GS_SHARED && runtime.destroyed == destroyed + 1);
    other.free(block);
  }
}

}  // namespace

int main() {
  fake_cuda_reset(1);
  gs_config c{kBudget, 2 * kMiB, 16 * kMiB, 0, GS_UNMANAGED,      -1, 0,
              -1,      0,        GS_CUDA,   0, GPUSHARE_FAKE_CUDA};
  CHECK(gs_start(&c) == 0);
  without_a_runtime_it_says_so();
  FakeRuntime runtime;
  CHECK(runtime.library);
  outside_jobs_the_runtime_answers(runtime);
  a_job_waits_for_its_own_work(runtime);
  a_capture_bears_the_wait_of_another_job();
  a_job_may_not_wait_within_its_own_capture(runtime);
  memory_is_that_of_the_budget();
  order_is_kept_on_blocking_streams(runtime);
  what_is_freed_may_be_in_use_on_a_stream_of_a_library(runtime);
  CHECK(gs_check() == 0);
  CHECK(fake_cuda_read_counters().misuses == 0);
  printf("cuda_runtime: ok\n");
  return 0;
}
