// The stress of cuda_stress_test.cpp on the streams of a real driver: jobs that come and go, in a
// budget that is less than their peaks together. Kernels look for the bytes of other owners, and so
// does the CPU in copies. It needs nothing but the driver, so that it runs over the fake one too.
//
//   cuda_device_stress [LIBRARY [SECONDS]]     libcuda.so.1, 20
//
// Prints what it did, a count on each line. A read that found another owner's bytes ends it with
// exit code 1, what else is wrong by a signal.
#include <bit>
#include <cstdlib>
#include <exception>
#include <memory>

#include "cuda_stress.h"

using namespace gpushare;
using namespace gpushare::cuda;
using stress::Counts;
using stress::Job;
using stress::Sizes;

namespace {

constexpr unsigned kScripts = 4;
constexpr unsigned kJobsInTurn = (kAccounts - 1) / kScripts;

// The smallest pages that the device has; blocks of up to 32 of them.
Sizes sizes(uint64_t page) {
  auto largest = static_cast<unsigned>(std::countr_zero(32 * page / 8));
  return {page, 16 * page, 480 * page, 160 * page, largest, 2};
}

gs_config config(const Sizes& s) {
  return {s.budget, s.page, s.region, 0, GS_ZICO, -1, 0, -1, 0, GS_CUDA, 0, nullptr};
}

// One job after the other. Their streams stay, as those of the command's jobs.
void in_turn(const stress::World& world, unsigned script, uint64_t life_ns,
             std::vector<std::unique_ptr<Job>>& jobs) {
  CUcontext context;
  world.driver.check(world.driver.cuDevicePrimaryCtxRetain(&context, 0),
                     "cuDevicePrimaryCtxRetain");
  world.driver.check(world.driver.cuCtxSetCurrent(context), "cuCtxSetCurrent");
  for (unsigned n = 1; n <= kJobsInTurn && !world.counts.ending; ++n) {
    jobs.push_back(std::make_unique<Job>(world, script * 1000 + n, n < kJobsInTurn ? life_ns : 0));
    stress::permit_all(world.runtime, kAccounts - 1);
    jobs.back()->start();
    jobs.back()->join();
  }
}

void tell(const char* what, uint64_t count) {
  printf("%s %llu\n", what, static_cast<unsigned long long>(count));
}

void tell(Runtime& runtime, const Counts& counts, uint64_t walks, size_t jobs) {
  const Fences::Counters& f = runtime.governor().fences().counters();
  const auto& p = runtime.governor().pool().counters();
  tell("jobs", jobs);
  tell("iterations", counts.iterations);
  tell("blocks", counts.next_tag);
  tell("copies", counts.copies);
  tell("refusals", counts.refusals);
  tell("device_waits", f.device_waits);
  tell("cpu_waits", f.cpu_waits);
  tell("mappings", p.mapped);
  tell("pages_changed_owner", p.changed_owner);
  tell("walks", walks);
}

int judge(const Driver& driver, const Kernels& kernels, Runtime& runtime) {
  driver.check(driver.cuCtxSynchronize(), "cuCtxSynchronize");
  const WrongReads& w = kernels.wrong();
  tell("wrong_reads", w.count);
  CHECK(runtime.governor().pool_state().held == 0);
  CHECK_EMPTY(runtime.check());
  CHECK(runtime.governor().pool().counters().changed_owner > 0);  // or nothing was tried
  if (!w.count) return 0;
  printf("the first: at %llx, which job %llu wrote (tag %llx), is %llx (job %llu)\n",
         static_cast<unsigned long long>(w.address),
         static_cast<unsigned long long>(w.expected >> 48),
         static_cast<unsigned long long>(w.expected), static_cast<unsigned long long>(w.found),
         static_cast<unsigned long long>(w.found >> 48));
  return 1;
}

int run(const char* library, uint64_t seconds) {
  Driver driver(library);
  CudaDevice device(&driver, 0);
  const Sizes s = sizes(device.granularity());
  Telemetry telemetry;
  CHECK(telemetry.open(-1));
  Runtime runtime(config(s), &device, &telemetry);
  Kernels kernels(driver, library);
  Counts counts;
  stress::World world{driver, kernels, runtime, s, counts};
  std::vector<std::unique_ptr<Job>> jobs[kScripts];
  std::vector<std::thread> scripts;
  for (unsigned i = 0; i < kScripts; ++i)
    scripts.emplace_back(
        [&, i] { in_turn(world, i, seconds * 1'000'000'000 / kJobsInTurn, jobs[i]); });
  std::atomic<bool> done{false};
  uint64_t walks = 0;
  std::thread sampler([&] {
    for (; !done; ++walks) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      runtime.tick();
      CHECK_EMPTY(runtime.check());
    }
  });
  for (uint64_t n = 0; n < seconds || counts.iterations <= kScripts; ++n)
    std::this_thread::sleep_for(std::chrono::seconds(1));
  counts.ending = true;
  for (std::thread& t : scripts) t.join();
  done = true;
  sampler.join();
  size_t begun = 0;
  for (const auto& of_script : jobs) begun += of_script.size();
  tell(runtime, counts, walks, begun);
  return judge(driver, kernels, runtime);
}

}  // namespace

int main(int argc, char** argv) {
  setvbuf(stdout, nullptr, _IONBF, 0);
  try {
    return run(argc > 1 ? argv[1] : "libcuda.so.1", argc > 2 ? strtoull(argv[2], nullptr, 10) : 20);
  } catch (const std::exception& error) {
    fprintf(stderr, "%s\n", error.what());
    return 3;
  }
}
