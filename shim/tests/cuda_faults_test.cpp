// Every driver call that the CUDA device makes fails once, at any time of a random program, or for
// good; and somebody else takes the device's memory. Whoever asked is told, the others go on, and
// still no read finds what another wrote.
#include <cstdlib>
#include <string>

#include "cuda_program.h"

using namespace random_program;

namespace {

bool ends_a_program(const std::string& call) {
  // Set-up of the test itself, and what would break a capture, which is none of the memory's
  // matters.
  for (const char* left_out :
       {"cuStreamCreate", "cuStreamDestroy_v2", "cuGetErrorName", "cuStreamBeginCapture_v2",
        "cuStreamEndCapture", "cuThreadExchangeStreamCaptureMode"})
    if (call == left_out) return true;
  return false;
}

void one_failure_at_any_time(const Driver& driver) {
  for (const char* const* call = fake_cuda_entry_points(); *call; ++call) {
    if (ends_a_program(*call)) continue;
    Sums sums;
    for (uint64_t nth = 1, seed = 0; nth < 400; nth += 1 + nth, ++seed) {
      fake_cuda_reset(seed);
      fake_cuda_set_granularity(kPage);
      driver.check(driver.cuInit(0), "cuInit");
      Program program(driver, seed, sums);
      program.may_fail();
      CHECK(fake_cuda_fail(*call, nth, CUDA_ERROR_UNKNOWN));
      program.run(300);
    }
    bool must_say = *call == std::string("cuMemMap") || *call == std::string("cuMemCreate") ||
                    *call == std::string("cuMemSetAccess");
    CHECK(!must_say || sums.failures > 0);
  }
}

// The budget says more than the device has.
void memory_is_taken_by_others(const Driver& driver) {
  Sums sums;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    fake_cuda_reset(seed);
    fake_cuda_set_granularity(kPage);
    fake_cuda_set_memory(32 * kPage);
    fake_cuda_take(seed % 24 * kPage);
    driver.check(driver.cuInit(0), "cuInit");
    Program program(driver, seed, sums);
    program.may_fail();
    program.run(300);
  }
  CHECK(sums.taken > 0 && sums.refused > 0);
}

void a_device_that_can_not_be_had(const Driver& driver) {
  for (const char* call : {"cuInit", "cuDeviceGet", "cuDevicePrimaryCtxRetain", "cuStreamCreate"}) {
    fake_cuda_reset(0);
    CHECK(fake_cuda_fail(call, 1, CUDA_ERROR_NO_DEVICE));
    bool told = false;
    try {
      CudaDevice device(&driver, 0);
    } catch (const DeviceFailure& e) {
      told = strstr(e.what(), call) && strstr(e.what(), "CUDA_ERROR_NO_DEVICE");
    }
    CHECK(told);
  }
  bool told = false;
  try {
    Driver missing("libcuda-of-nobody.so.1");
  } catch (const DeviceFailure& e) {
    told = strstr(e.what(), "libcuda-of-nobody.so.1");
  }
  CHECK(told);
}

}  // namespace

int main() {
  setvbuf(stdout, nullptr, _IONBF, 0);
  Driver driver(GPUSHARE_FAKE_CUDA);
  one_failure_at_any_time(driver);
  memory_is_taken_by_others(driver);
  a_device_that_can_not_be_had(driver);
  printf("cuda faults: ok\n");
}
