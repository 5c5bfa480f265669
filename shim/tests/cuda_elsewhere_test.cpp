// Blocks that other streams use too: those that are freed come back in the order of their batches,
// and what is looked at for that is what was freed, not what is in use.
#include <vector>

#include "../src/devices/cuda.h"
#include "../src/runtime.h"
#include "check.h"
#include "fake_cuda/driver.h"
#include "fake_cuda/fake_cuda.h"

using namespace gpushare;
using namespace gpushare::cuda;

namespace {

constexpr uint64_t kPage = 64 << 10, kBudget = 256 * kPage, kBytes = 32 * kPage;
constexpr uint32_t kJob = 1;

class Machine {
 public:
  explicit Machine(const Driver& driver)
      : driver_(driver),
        telemetry_(opened(driver)),
        device_(&driver, 0),
        runtime_(config(), &device_, &telemetry_) {
    CHECK(runtime_.governor().begin_job(1) == kJob);
    for (CUstream& s : streams_) {
      driver.check(driver.cuStreamCreate(&s, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
      runtime_.begin_stream(kJob, number(s));
    }
  }
  ~Machine() {
    hold(false);
    runtime_.end_job(kJob);
    fake_cuda_run_all();
    CHECK_EMPTY(runtime_.check());
    fake_cuda_counters counters = fake_cuda_read_counters();
    CHECK(counters.wrong_reads == 0 && counters.misuses == 0);
  }
  Runtime& runtime() { return runtime_; }
  void* take(int of, uint64_t bytes = kBytes) {
    return runtime_.allocate(bytes, kJob, number(streams_[of]), false, 0);
  }
  // The last stream uses it too.
  void* use_elsewhere(void* block) {
    CHECK(runtime_.note_use(block, number(streams_[2])));
    CHECK(fake_cuda_launch_write(streams_[2], reinterpret_cast<uint64_t>(block), kPage, 7) == 0);
    return block;
  }
  void give(void* block) { CHECK(runtime_.release(block)); }
  void close_batch() { runtime_.governor().fences().close(kJob); }
  // Once what it uses has ended, and what has been issued before.
  void hold(bool held) {
    CHECK(fake_cuda_hold(streams_[2], held) == 0);
    if (!held) fake_cuda_run_all();
  }
  void end_stream(int i) {
    runtime_.end_stream(number(streams_[i]));
    driver_.check(driver_.cuStreamDestroy_v2(streams_[i]), "cuStreamDestroy_v2");
  }
  // Gives back what has become free.
  void look() { reclaim(runtime_.governor(), account(), false); }
  uint32_t noted() { return account().foreign; }
  uint32_t freed() { return account().foreign_freed; }
  size_t queued() { return account().freed_elsewhere.size(); }

 private:
  static Stream number(CUstream stream) { return reinterpret_cast<Stream>(stream); }
  static Telemetry opened(const Driver& driver) {
    fake_cuda_reset(3);
    fake_cuda_set_granularity(kPage);
    driver.check(driver.cuInit(0), "cuInit");
    Telemetry t;
    CHECK(t.open(-1));
    return t;
  }
  static gs_config config() {
    return {kBudget, kPage, 16 * kPage, 0, GS_UNMANAGED, -1, 0, -1, 0, GS_CUDA, 0, nullptr};
  }
  Account& account() { return runtime_.governor().account(kJob); }

  const Driver& driver_;
  Telemetry telemetry_;
  CudaDevice device_;
  Runtime runtime_;
  CUstream streams_[3] = {};
};

// Those that are in use are not looked at, and what has been given back is forgotten.
void a_batch_is_free_after_those_before_it(const Driver& driver) {
  Machine m(driver);
  void *in_use = m.use_elsewhere(m.take(0)), *first = m.use_elsewhere(m.take(0));
  std::vector<void*> later = {m.take(1), m.take(1)};
  m.give(first);
  m.close_batch();
  fake_cuda_run_all();
  m.hold(true);
  for (void* block : later) {
    m.give(m.use_elsewhere(block));
    m.close_batch();
  }
  CHECK(m.noted() == 4 && m.freed() == 3 && m.queued() == 3);
  m.look();
  CHECK(m.noted() == 3 && m.freed() == 2);
  m.look();
  CHECK(m.noted() == 3 && m.queued() == 2);
  m.hold(false);
  m.look();
  CHECK(m.noted() == 1 && m.freed() == 0);
  m.give(in_use);
  m.close_batch();
  fake_cuda_run_all();
  m.look();
  CHECK(m.noted() == 0 && m.queued() == 1);
}

// It is not used there again, so the batch does not matter.
void what_a_gone_stream_had_is_free_before_its_batch(const Driver& driver) {
  Machine m(driver);
  void *of_a_gone_one = m.use_elsewhere(m.take(1)), *other = m.use_elsewhere(m.take(0));
  fake_cuda_run_all();
  m.end_stream(1);
  m.hold(true);
  m.use_elsewhere(other);
  m.give(other);
  m.look();  // that the stream has ended is no news any more
  m.give(of_a_gone_one);
  CHECK(m.noted() == 2);
  m.look();
  CHECK(m.noted() == 1 && m.freed() == 1);
}

// Nobody's stream, that two jobs use: it is the first one's still when the second one has ended.
void a_stream_of_nobody_outlives_a_job(const Driver& driver) {
  Machine m(driver);
  CUstream nobodys = nullptr;
  driver.check(driver.cuStreamCreate(&nobodys, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
  Runtime& runtime = m.runtime();
  uint32_t second = static_cast<uint32_t>(runtime.governor().begin_job(1));
  auto write = [&](void* block, uint64_t tag) {
    CHECK(fake_cuda_launch_write(nobodys, reinterpret_cast<uint64_t>(block), kPage, tag) == 0);
    return block;
  };
  auto take = [&](uint32_t job) {
    return write(runtime.allocate(kBytes, job, reinterpret_cast<Stream>(nobodys), false, 0), job);
  };
  void *first = take(kJob), *of_second = take(second);
  m.give(of_second);
  fake_cuda_run_all();
  CUgraph graph = nullptr;
  CHECK(driver.cuStreamBeginCapture_v2(nobodys, CU_STREAM_CAPTURE_MODE_RELAXED) == CUDA_SUCCESS);
  runtime.end_job(second);
  CHECK(driver.cuStreamEndCapture(nobodys, &graph) == CUDA_SUCCESS);
  CHECK(fake_cuda_hold(nobodys, true) == 0);
  write(first, 7);
  Fences& fences = runtime.governor().fences();
  Batch batch = fences.open(kJob);
  m.give(first);
  m.close_batch();
  fake_cuda_run_all();
  fences.poll(kJob);
  CHECK(!fences.passed(kJob, batch));
  CHECK(fake_cuda_hold(nobodys, false) == 0);
  fake_cuda_run_all();
  fences.poll(kJob);
  CHECK(fences.passed(kJob, batch));
}

// One that is used elsewhere once more when it comes to be looked at is another one.
void an_address_may_be_used_elsewhere_again(const Driver& driver) {
  Machine m(driver);
  m.hold(true);
  void* first = m.take(1);
  m.give(m.use_elsewhere(first));
  m.close_batch();
  m.hold(false);
  m.look();
  CHECK(m.queued() == 1);
  void* again = m.take(1);
  CHECK(again == first);
  m.use_elsewhere(again);
  m.look();
  CHECK(m.noted() == 1 && m.freed() == 0);
  m.hold(true);
  m.use_elsewhere(again);
  m.give(again);
  m.close_batch();
  m.look();
  CHECK(m.noted() == 1 && m.freed() == 1);
}

}  // namespace

int main() {
  Driver driver(GPUSHARE_FAKE_CUDA);
  a_batch_is_free_after_those_before_it(driver);
  what_a_gone_stream_had_is_free_before_its_batch(driver);
  an_address_may_be_used_elsewhere_again(driver);
  a_stream_of_nobody_outlives_a_job(driver);
  puts("elsewhere: ok");
}
