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
      program.faulty = true;
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
    program.faulty = true;
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

// A job's own pages can't be mapped at the addresses where it wants them next. They were free for
// it at once, since it goes on on the same stream; who gets them now is another, and its stream may
// be ahead of the job's last read.
void what_is_given_up_has_been_read(const Driver& driver, uint64_t seed) {
  constexpr uint64_t kPages = 4;
  fake_cuda_reset(seed);
  fake_cuda_set_granularity(kPage);
  Telemetry telemetry;
  CHECK(telemetry.open(-1));
  CudaDevice device(&driver, 0);
  Governor g(&device, Policy::kUnmanaged, kPage, kPages, 64, &telemetry);
  CUstream streams[2];
  Stream handles[2];
  for (uint32_t i = 0; i < 2; ++i) {
    CHECK(g.begin_job(0) == static_cast<int32_t>(i + 1));
    driver.check(driver.cuStreamCreate(&streams[i], CU_STREAM_DEFAULT), "cuStreamCreate");
    handles[i] = reinterpret_cast<Stream>(streams[i]);
    g.fences().add_stream(i + 1, handles[i]);
  }
  const std::atomic<Stream> first(handles[0]), second(handles[1]);
  auto at = [&](PageIndex p) { return reinterpret_cast<CUdeviceptr>(g.pool().address(p)); };
  auto take = [&](uint32_t job) {
    g.charge(job, kPages, false, kPages * kPage);
    DeviceWork work;
    PageIndex p = g.hold_range(kPages, job, handles[job - 1], work);
    g.perform(work, job, handles[job - 1]);
    return p;
  };

  PageIndex read = take(1);
  fake_cuda_launch_write(streams[0], at(read), kPages * kPage, 11);
  fake_cuda_launch_read(streams[0], at(read), kPages * kPage, 11);
  g.unhold(read, kPages, 1, first, false);
  g.charge(1, kPages, false, kPages * kPage);
  DeviceWork work;
  PageIndex elsewhere = g.hold_range(kPages, 1, handles[0], work);
  CHECK(work.mappings.size() == kPages && work.waits.empty());
  CHECK(fake_cuda_fail("cuMemMap", 1, CUDA_ERROR_UNKNOWN));
  bool told = false;
  try {
    g.perform(work, 1, handles[0]);
  } catch (const DeviceFailure&) {
    told = true;
  }
  CHECK(told);
  g.give_up(work, 1);
  g.unhold(elsewhere, kPages, 1, first, true);

  PageIndex taken = take(2);
  fake_cuda_launch_write(streams[1], at(taken), kPages * kPage, 22);
  fake_cuda_run_all();
  CHECK(fake_cuda_read_counters().wrong_reads == 0);
  g.unhold(taken, kPages, 2, second, true);
  CHECK_EMPTY(g.check());
}

}  // namespace

int main() {
  setvbuf(stdout, nullptr, _IONBF, 0);
  Driver driver(GPUSHARE_FAKE_CUDA);
  one_failure_at_any_time(driver);
  for (uint64_t seed = 0; seed < 20; ++seed) what_is_given_up_has_been_read(driver, seed);
  memory_is_taken_by_others(driver);
  a_device_that_can_not_be_had(driver);
  printf("cuda faults: ok\n");
}
