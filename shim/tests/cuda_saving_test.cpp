// What a job holds on the device leaves for a while and comes back to the same addresses, whatever
// the device still has to do there, before and after.
#include <cstdint>

#include "../src/devices/cuda.h"
#include "../src/pool.h"
#include "check.h"
#include "fake_cuda/fake_cuda.h"

using namespace gpushare;
using namespace gpushare::cuda;

namespace {

constexpr uint64_t kPage = 64 << 10, kPages = 4;

struct Rig {
  Driver driver{GPUSHARE_FAKE_CUDA};
  CudaDevice device;
  Fences fences;
  Pool pool;
  CUstream streams[2];

  Rig() : device(&driver, 0), fences(&device, 3, 8 * kPage), pool(&device, &fences, kPage, 6, 64) {
    for (uint32_t i = 0; i < 2; ++i) {
      driver.check(driver.cuStreamCreate(&streams[i], CU_STREAM_DEFAULT), "cuStreamCreate");
      fences.add_stream(i + 1, stream(i + 1));
    }
  }
  Stream stream(uint32_t account) const { return reinterpret_cast<Stream>(streams[account - 1]); }
  unsigned long long address(PageIndex p) const {
    return reinterpret_cast<unsigned long long>(pool.address(p));
  }
  PageIndex take(uint32_t account) {
    PageIndex first = pool.reserve_range(kPages);
    DeviceWork work;
    pool.hold(first, kPages, account, stream(account), work);
    for (const DeviceWork::Mapping& m : work.mappings) {
      if (m.create) CHECK(device.create(m.frame));
      device.map(pool.address(m.page), {&m.frame, 1});
    }
    for (auto [other, batch] : work.waits) fences.wait(stream(account), other, batch);
    return first;
  }
};

void it_comes_back_as_it_was(uint64_t seed) {
  fake_cuda_reset(seed);
  fake_cuda_set_granularity(kPage);
  Rig rig;
  PageIndex mine = rig.take(1);
  fake_cuda_launch_write(rig.streams[0], rig.address(mine), kPages * kPage, 11);
  CHECK(rig.pool.save(1) == kPages);  // the write has not run yet
  PageIndex other = rig.take(2);
  for (int n = 0; n < 4; ++n) {
    fake_cuda_launch_write(rig.streams[1], rig.address(other), kPages * kPage, 22);
    fake_cuda_launch_read(rig.streams[1], rig.address(other), kPages * kPage, 22);
  }
  rig.pool.unhold(other, kPages, rig.stream(2));  // and these have not either
  rig.pool.release_range(other, kPages);
  rig.pool.restore(1);
  fake_cuda_launch_read(rig.streams[0], rig.address(mine), kPages * kPage, 11);
  rig.pool.unhold(mine, kPages, rig.stream(1));
  CHECK_EMPTY(rig.pool.check(0));
  fake_cuda_run_all();
  fake_cuda_counters c = fake_cuda_read_counters();
  if (c.misuses) printf("%s\n", fake_cuda_last_misuse());
  CHECK(c.wrong_reads == 0 && c.misuses == 0);
}

}  // namespace

int main() {
  setvbuf(stdout, nullptr, _IONBF, 0);
  for (uint64_t seed = 0; seed < 100; ++seed) it_comes_back_as_it_was(seed);
  printf("cuda saving: ok\n");
}
