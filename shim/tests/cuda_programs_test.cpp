// Random programs of several jobs and streams on the CUDA device, over a driver whose streams run
// late and in any order that they may: no read finds bytes that another owner wrote, and the CPU
// waits for the device nowhere. In every fourth program addresses are scarce and the budget
// changes, in another fourth graphs are captured and run; there the CPU may wait until an address,
// or what a graph gets, is no longer used. GPUSHARE_PROGRAMS says how many programs; 400 without
// it.
#include <cstdlib>

#include "cuda_program.h"

using namespace random_program;

int main() {
  setvbuf(stdout, nullptr, _IONBF, 0);
  const char* asked = getenv("GPUSHARE_PROGRAMS");
  uint64_t programs = asked ? strtoull(asked, nullptr, 10) : 600;
  Driver driver(GPUSHARE_FAKE_CUDA);
  Sums sums;
  for (uint64_t seed = 0; seed < programs; ++seed) {
    fake_cuda_reset(seed);
    fake_cuda_set_granularity(kPage);
    fake_cuda_reuse_handles(seed % 2);
    driver.check(driver.cuInit(0), "cuInit");
    Program(driver, seed, sums).run(300);
  }
  auto n = [](uint64_t value) { return static_cast<unsigned long long>(value); };
  printf("cuda: %llu programs, %llu blocks, %llu refused, %llu uses on other streams\n",
         n(programs), n(sums.taken), n(sums.refused), n(sums.foreign));
  printf("cuda: %llu waits of the CPU, %llu frames given back, %llu graphs\n", n(sums.cpu_waits),
         n(sums.destroyed), n(sums.captured));
  // No clock of this machine: the fake device's.
  CHECK(static_cast<double>(sums.device_time) <= 1.02 * static_cast<double>(sums.ideal_time));
  printf("cuda: the device takes %.4f of the time that the best waits would let it take\n",
         static_cast<double>(sums.device_time) / static_cast<double>(sums.ideal_time));
  printf("cuda: %llu waits, %llu batches closed early, %llu mappings, %llu pages changed owner\n",
         n(sums.waits), n(sums.early), n(sums.mapped), n(sums.changed_owner));
}
