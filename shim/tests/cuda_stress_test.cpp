// Four jobs (cuda_stress.h) on the CUDA device, over the fake driver, with a thread that runs the
// device and one that does what the sampler does; claims are exceeded now and then. No read finds
// bytes that another owner wrote, and a walk of pool and heaps finds nothing wrong. Then the same
// with driver calls that fail.
// GPUSHARE_STRESS_S says for how many seconds; 3 without it.
#include "cuda_stress.h"

#include <cstdlib>
#include <memory>

#include "../src/clock.h"
#include "fake_cuda/fake_cuda.h"

using namespace gpushare;
using namespace gpushare::cuda;
using stress::Counts;
using stress::Job;

namespace {

constexpr uint64_t kPage = 64 << 10;
constexpr stress::Sizes kSizes{kPage, 1 << 20, 640 * kPage, 160 * kPage, 18};
constexpr int kScripts = 4;

// A device as new, and a runtime on it.
struct Machine {
  Telemetry telemetry;
  CudaDevice device;
  Runtime runtime;
  explicit Machine(const Driver& driver)
      : telemetry(opened()), device(&driver, 0), runtime(config(), &device, &telemetry) {}
  static Telemetry opened() {
    fake_cuda_reset(1);
    fake_cuda_set_granularity(kPage);
    Telemetry t;
    CHECK(t.open(-1));
    return t;
  }
  static gs_config config() {
    return {kSizes.budget, kPage, kSizes.region, 0, GS_ZICO, -1, 0, -1, 0, GS_CUDA, 0, nullptr};
  }
};

void run(const Driver& driver, uint64_t seconds, bool faults) {
  Machine all(driver);
  // A mapping that failed is taken away once more, in case that had failed before.
  if (faults) fake_cuda_expect_misuse("no whole mappings");
  Runtime& runtime = all.runtime;
  std::vector<std::unique_ptr<Job>> jobs;
  Counts counts;
  Kernels kernels(driver, GPUSHARE_FAKE_CUDA);
  stress::World world{driver, kernels, runtime, kSizes, counts};
  for (unsigned i = 0; i < kScripts; ++i) jobs.push_back(std::make_unique<Job>(world, i));
  stress::permit_all(runtime, kScripts);
  std::atomic<bool> done{false};
  std::thread machine([&] {
    while (!done) fake_cuda_run(16);
  });
  uint64_t walks = 0;
  std::thread sampler([&] {
    std::mt19937_64 random(1);
    uint64_t seen = 0;
    const char* calls[] = {"cuMemMap", "cuMemCreate", "cuMemSetAccess"};
    while (!done) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      uint64_t calls_now = fake_cuda_calls("cuMemMap");
      if (faults && calls_now > seen + 20) {  // one at a time
        seen = calls_now;
        fake_cuda_fail(calls[random() % 3], 1 + random() % 3,
                       random() % 2 ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_UNKNOWN);
      }
      runtime.tick();
      CHECK_EMPTY(runtime.check());
      ++walks;
    }
  });
  for (auto& j : jobs) j->start();
  for (uint64_t n = 0; n < seconds || counts.iterations <= kScripts;
       ++n)  // however slow the machine is
    std::this_thread::sleep_for(std::chrono::seconds(1));
  counts.ending = true;
  for (auto& j : jobs) j->join();
  done = true;
  machine.join();
  sampler.join();
  for (auto& j : jobs) j->destroy_streams();
  fake_cuda_run_all();
  fake_cuda_counters c = fake_cuda_read_counters();
  if (c.wrong_reads) printf("%s\n", fake_cuda_last_wrong_read());
  CHECK(c.wrong_reads == 0 && kernels.wrong().count == 0);
  if (c.misuses) printf("%s\n", fake_cuda_last_misuse());
  CHECK(c.misuses == 0);
  CHECK(runtime.governor().pool_state().held == 0);
  CHECK_EMPTY(runtime.check());
  const Fences::Counters& f = runtime.governor().fences().counters();
  auto n = [](uint64_t value) { return static_cast<unsigned long long>(value); };
  printf("cuda stress%s: %llu iterations, %llu errors, %llu device waits, %llu waits of the CPU, ",
         faults ? " with faults" : "", n(counts.iterations), n(counts.refusals), n(f.device_waits),
         n(f.cpu_waits));
  printf("%llu mappings, %llu walks\n", n(runtime.governor().pool().counters().mapped), n(walks));
}

// Two threads look for blocks that became free, while the job makes, uses and frees the same few.
void two_reclaim(const Driver& driver, uint64_t seconds) {
  Machine all(driver);
  Runtime& runtime = all.runtime;
  auto account = static_cast<uint32_t>(runtime.governor().begin_job(1));
  CUstream own, side;
  for (CUstream* s : {&own, &side}) {
    driver.check(driver.cuStreamCreate(s, CU_STREAM_DEFAULT), "cuStreamCreate");
    runtime.begin_stream(account, reinterpret_cast<Stream>(*s));
  }
  std::atomic<bool> done{false};
  std::vector<std::thread> threads;
  for (int n = 0; n < 2; ++n)
    threads.emplace_back([&] {
      while (!done) reclaim(runtime.governor(), runtime.governor().account(account), false);
    });
  uint64_t blocks = 0, end = now_ns() + seconds * 1000000000;
  while (now_ns() < end) {
    for (int n = 0; n < 200; ++n) {  // many at once, so that both are at it for a while
      void* p = runtime.allocate(512, account, reinterpret_cast<Stream>(own), false);
      CHECK(runtime.note_use(p, reinterpret_cast<Stream>(side)));
      CHECK(runtime.release(p));
      ++blocks;
    }
    runtime.governor().fences().close(account);
    fake_cuda_run_all();
  }
  done = true;
  for (auto& t : threads) t.join();
  runtime.end_job(account);
  CHECK_EMPTY(runtime.check());
  CHECK(fake_cuda_read_counters().misuses == 0);
  printf("two reclaim: %llu blocks\n", static_cast<unsigned long long>(blocks));
}

}  // namespace

int main() {
  setvbuf(stdout, nullptr, _IONBF, 0);
  const char* asked = getenv("GPUSHARE_STRESS_S");
  uint64_t seconds = asked ? strtoull(asked, nullptr, 10) : 3;
  Driver driver(GPUSHARE_FAKE_CUDA);
  two_reclaim(driver, 1);
  run(driver, seconds, false);
  run(driver, seconds, true);
}
