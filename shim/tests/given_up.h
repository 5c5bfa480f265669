// Three jobs on the fake device whose work there can be made to fail, so that who has held pages
// gives them up.
#pragma once

#include <atomic>
#include <cstring>

#include "../src/devices/cuda.h"
#include "../src/heap.h"
#include "check.h"
#include "fake_cuda/fake_cuda.h"

using namespace gpushare;
using namespace gpushare::cuda;

constexpr uint64_t kPage = 256 << 10, kPages = 4, kAddresses = 64;

inline CUdeviceptr at(const void* p) { return reinterpret_cast<CUdeviceptr>(p); }

inline void write(CUstream stream, const void* p, uint64_t bytes, uint64_t tag) {
  fake_cuda_launch_write(stream, at(p), bytes, tag);
  fake_cuda_launch_read(stream, at(p), bytes, tag);
}

// Three jobs with a stream each, and a budget that one of them can fill.
struct World {
  World(const Driver& driver, uint64_t seed, uint64_t addresses = kAddresses)
      : driver(driver), device(start(driver, seed), 0), addresses(addresses) {
    CHECK(telemetry.open(-1));
    g.fences().longest_capture = {};
    for (uint32_t i = 0; i < 3; ++i) {
      CHECK(g.begin_job(0) == static_cast<int32_t>(i + 1));
      driver.check(driver.cuStreamCreate(&streams[i], CU_STREAM_DEFAULT), "cuStreamCreate");
      handles[i] = reinterpret_cast<Stream>(streams[i]);
      g.fences().add_stream(i + 1, handles[i]);
    }
  }
  static const Driver* start(const Driver& driver, uint64_t seed) {
    fake_cuda_reset(seed);
    fake_cuda_set_granularity(kPage);
    driver.check(driver.cuInit(0), "cuInit");
    return &driver;
  }
  Heap heap(uint32_t job, uint64_t region_pages) {
    return {&g, &map, job, handles[job - 1], 0, region_pages * kPage};
  }
  PageIndex hold(uint32_t job, uint64_t n, DeviceWork& work) {
    g.charge(job, n, false, n * kPage);
    return g.hold_range(n, job, handles[job - 1], work);
  }
  PageIndex take(uint32_t job, uint64_t n) {
    DeviceWork work;
    PageIndex p = hold(job, n, work);
    g.perform(work, job, handles[job - 1]);
    return p;
  }
  bool fails(DeviceWork& work, uint32_t job) {
    try {
      g.perform(work, job, handles[job - 1]);
      return false;
    } catch (const DeviceFailure&) {
      return true;
    }
  }
  void unhold(uint32_t job, PageIndex first, uint64_t n, bool release,
              const DeviceWork* undone = nullptr) {
    std::atomic<Stream> stream(handles[job - 1]);
    g.unhold(first, n, job, stream, release, undone);
  }
  void begin_capture(uint32_t job) {
    driver.check(
        driver.cuStreamBeginCapture_v2(streams[job - 1], CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
        "cuStreamBeginCapture");
  }
  void end_capture(uint32_t job) {
    CUgraph graph;
    driver.check(driver.cuStreamEndCapture(streams[job - 1], &graph), "cuStreamEndCapture");
  }
  uint64_t held() {
    uint64_t sum = 0;
    for (uint32_t job : {1, 2, 3}) sum += g.account(job).held.load();
    return sum;
  }
  // Where a mapping failed the device has tried in vain to unmap what might lie there.
  void finish(uint64_t failed_mappings = 0) {
    fake_cuda_run_all();
    CHECK(fake_cuda_read_counters().wrong_reads == 0);
    CHECK(fake_cuda_read_counters().misuses == failed_mappings);
    CHECK_EMPTY(g.check());
    CHECK(g.pool().backed() <= kPages);
  }

  const Driver& driver;
  CudaDevice device;
  uint64_t addresses;
  Telemetry telemetry;
  Governor g{&device, Policy::kUnmanaged, kPage, kPages, addresses, &telemetry};
  PageMap map{addresses};
  CUstream streams[3];
  Stream handles[3];
};

inline void free(World& w, Heap& heap, void* p) {
  CHECK(heap.release(p, w.map.find(w.g.pool().index(p))));
}
