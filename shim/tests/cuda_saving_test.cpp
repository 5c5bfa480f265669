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

constexpr uint64_t kPage = 64 << 10, kPages = 4, kMany = 80;

struct Rig {
  Driver driver{GPUSHARE_FAKE_CUDA};
  CudaDevice device;
  Fences fences;
  Pool pool;
  uint64_t pages;  // that each job takes
  CUstream streams[3];

  explicit Rig(uint64_t budget, uint64_t each = kPages)
      : device(&driver, 0),
        fences(&device, 4, 8 * kPage),
        pool(&device, &fences, kPage, budget, 512),
        pages(each) {
    for (uint32_t i = 0; i < 3; ++i) {
      driver.check(driver.cuStreamCreate(&streams[i], CU_STREAM_DEFAULT), "cuStreamCreate");
      fences.add_stream(i + 1, stream(i + 1));
    }
  }
  Stream stream(uint32_t account) const { return reinterpret_cast<Stream>(streams[account - 1]); }
  unsigned long long address(PageIndex p) const {
    return reinterpret_cast<unsigned long long>(pool.address(p));
  }
  PageIndex take(uint32_t account) {
    PageIndex first = pool.reserve_range(pages);
    DeviceWork work;
    pool.hold(first, pages, account, stream(account), work);
    for (const DeviceWork::Mapping& m : work.mappings) {
      if (m.create) CHECK(device.create(m.frame));
      device.map(pool.address(m.page), {&m.frame, 1});
    }
    for (auto [other, batch] : work.waits) fences.wait(stream(account), other, batch, account);
    return first;
  }
};

void it_comes_back_as_it_was(uint64_t seed) {
  fake_cuda_reset(seed);
  fake_cuda_set_granularity(kPage);
  Rig rig(6);
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

// What the machine has not got would end all jobs.
void it_stays_where_the_machine_has_no_memory_for_it() {
  fake_cuda_reset(1);
  fake_cuda_set_granularity(kPage);
  Rig rig(6);
  PageIndex mine = rig.take(1);
  fake_cuda_launch_write(rig.streams[0], rig.address(mine), kPages * kPage, 11);
  rig.device.memory_left = [] { return kPages * kPage; };  // but jobs need some of it
  CHECK(rig.pool.save(1) == 0);
  fake_cuda_launch_read(rig.streams[0], rig.address(mine), kPages * kPage, 11);
  fake_cuda_run_all();
  CHECK(fake_cuda_read_counters().wrong_reads == 0);
  rig.device.memory_left = [] { return 2 * kPages * kPage; };
  CHECK(rig.pool.save(1) == kPages);
}

void leave(Rig& rig, uint32_t account, PageIndex first) {
  rig.pool.unhold(first, rig.pages, rig.stream(account));
  rig.pool.release_range(first, rig.pages);
}

PageIndex write(Rig& rig, uint32_t account) {
  PageIndex first = rig.take(account);
  fake_cuda_launch_write(rig.streams[account - 1], rig.address(first), rig.pages * kPage,
                         11 * account);
  return first;
}

void begin_capture(Rig& rig, uint32_t account) {
  rig.driver.check(rig.driver.cuStreamBeginCapture_v2(rig.streams[account - 1],
                                                      CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
                   "cuStreamBeginCapture");
}

void end_capture(Rig& rig, uint32_t account) {
  CUgraph graph;
  rig.driver.check(rig.driver.cuStreamEndCapture(rig.streams[account - 1], &graph),
                   "cuStreamEndCapture");
}

// What the first job had written is there.
void finish(Rig& rig, PageIndex mine) {
  fake_cuda_launch_read(rig.streams[0], rig.address(mine), rig.pages * kPage, 11);
  rig.pool.unhold(mine, rig.pages, rig.stream(1));
  CHECK_EMPTY(rig.pool.check(0));
  fake_cuda_run_all();
  CHECK(fake_cuda_read_counters().wrong_reads == 0 && fake_cuda_read_counters().misuses == 0);
}

// Nobody can wait for what a job has used that captures a graph.
void it_comes_back_once_a_capture_has_ended(uint64_t seed) {
  fake_cuda_reset(seed);
  fake_cuda_set_granularity(kPage);
  Rig rig(6);
  PageIndex mine = write(rig, 1);
  CHECK(rig.pool.save(1) == kPages);
  PageIndex other = write(rig, 2);
  begin_capture(rig, 2);
  leave(rig, 2, other);
  CHECK(rig.pool.can_restore(2) && !rig.pool.can_restore(3));  // two of its own are left
  rig.pool.set_budget(8);
  CHECK(rig.pool.can_restore(kPages) && !rig.pool.can_restore(kPages + 1));
  rig.pool.set_budget(6);
  end_capture(rig, 2);
  CHECK(rig.pool.can_restore(kPages));
  rig.pool.restore(1);
  finish(rig, mine);
}

// What others have freed will do, also where it is the latest of much, and their work is to come.
void it_comes_back_to_what_can_be_waited_for(uint64_t seed) {
  fake_cuda_reset(seed);
  fake_cuda_set_granularity(kPage);
  Rig rig(2 * kMany, kMany);
  PageIndex mine = write(rig, 1);
  CHECK(rig.pool.save(1) == kMany);
  PageIndex captured = write(rig, 2), other = write(rig, 3);
  begin_capture(rig, 2);
  leave(rig, 2, captured);
  CHECK(!rig.pool.can_restore(1));
  leave(rig, 3, other);
  CHECK(rig.pool.can_restore(kMany) && !rig.pool.can_restore(kMany + 1));
  rig.pool.restore(1);
  end_capture(rig, 2);
  finish(rig, mine);
}

// Another process has taken what the budget promises: all jobs would be lost if it came back now.
void it_stays_where_the_device_has_no_memory_left(uint64_t seed) {
  fake_cuda_reset(seed);
  fake_cuda_set_granularity(kPage);
  fake_cuda_set_memory(12 * kPage);
  Rig rig(12);
  PageIndex mine = write(rig, 1);
  CHECK(rig.pool.save(1) == kPages);
  PageIndex other = write(rig, 2), third = write(rig, 3);
  rig.pool.set_budget(2 * kPages);
  CHECK(rig.pool.backed() == 2 * kPages);
  rig.pool.set_budget(3 * kPages);
  fake_cuda_take(12 * kPage - fake_cuda_read_counters().bytes_held);
  CHECK(!rig.pool.can_restore(kPages));
  leave(rig, 3, third);
  CHECK(rig.pool.can_restore(kPages));
  rig.pool.restore(1);
  leave(rig, 2, other);
  finish(rig, mine);
}

}  // namespace

int main() {
  setvbuf(stdout, nullptr, _IONBF, 0);
  it_stays_where_the_machine_has_no_memory_for_it();
  for (uint64_t seed = 0; seed < 40; ++seed) it_stays_where_the_device_has_no_memory_left(seed);
  for (uint64_t seed = 0; seed < 100; ++seed) it_comes_back_as_it_was(seed);
  for (uint64_t seed = 0; seed < 40; ++seed) it_comes_back_once_a_capture_has_ended(seed);
  for (uint64_t seed = 0; seed < 10; ++seed) it_comes_back_to_what_can_be_waited_for(seed);
  printf("cuda saving: ok\n");
}
