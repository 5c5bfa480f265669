// A fresh fake machine for a test, with a context that is current in this thread, and short ways to
// do what most tests do.
#pragma once

#include <string>

#include "../check.h"
#include "driver.h"
#include "fake_cuda.h"

namespace gpushare::fake_cuda {

using namespace gpushare::cuda;

constexpr size_t kPage = 4096;

inline CUmemAllocationProp on_device() {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  return properties;
}

// Says whether something was counted as a misuse since the last time it was asked.
class Misuses {
 public:
  bool any() {
    uint64_t before = seen_;
    seen_ = fake_cuda_read_counters().misuses;
    return seen_ != before;
  }
  // One more, with that in its text.
  bool one(const char* text) {
    bool right = fake_cuda_read_counters().misuses == seen_ + 1 &&
                 std::string(fake_cuda_last_misuse()).find(text) != std::string::npos;
    if (!right) fprintf(stderr, "last misuse: %s\n", fake_cuda_last_misuse());
    seen_ = fake_cuda_read_counters().misuses;
    return right;
  }

 private:
  uint64_t seen_ = 0;
};

struct Fresh {
  explicit Fresh(uint64_t seed = 1) {
    fake_cuda_reset(seed);
    fake_cuda_set_granularity(kPage);
    CHECK(cuInit(0) == CUDA_SUCCESS);
    CUcontext context;
    CHECK(cuDevicePrimaryCtxRetain(&context, 0) == CUDA_SUCCESS);
    CHECK(cuCtxSetCurrent(context) == CUDA_SUCCESS);
  }

  CUdeviceptr reserve(size_t bytes) {
    CUdeviceptr address;
    CHECK(cuMemAddressReserve(&address, bytes, 0, 0, 0) == CUDA_SUCCESS);
    return address;
  }
  CUmemGenericAllocationHandle create(size_t bytes = kPage) {
    CUmemGenericAllocationHandle handle;
    auto properties = on_device();
    CHECK(cuMemCreate(&handle, bytes, &properties, 0) == CUDA_SUCCESS);
    return handle;
  }
  void open(CUdeviceptr address, size_t bytes) {
    CUmemAccessDesc access{{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CHECK(cuMemSetAccess(address, bytes, &access, 1) == CUDA_SUCCESS);
  }
  // New memory at a new address, ready to use.
  CUdeviceptr memory(size_t bytes = kPage) {
    CUdeviceptr address = reserve(bytes);
    CHECK(cuMemMap(address, bytes, 0, create(bytes), 0) == CUDA_SUCCESS);
    open(address, bytes);
    return address;
  }
  CUstream stream(unsigned flags = CU_STREAM_NON_BLOCKING) {
    CUstream created;
    CHECK(cuStreamCreate(&created, flags) == CUDA_SUCCESS);
    return created;
  }
  CUevent event() {
    CUevent created;
    CHECK(cuEventCreate(&created, CU_EVENT_DISABLE_TIMING) == CUDA_SUCCESS);
    return created;
  }
  CUevent recorded(CUstream stream) {
    CUevent created = event();
    CHECK(cuEventRecord(created, stream) == CUDA_SUCCESS);
    return created;
  }
  void write(CUstream s, CUdeviceptr address, uint64_t tag, uint64_t duration = 1) {
    CHECK(fake_cuda_launch_write_for(s, address, kPage, tag, duration) == CUDA_SUCCESS);
  }
  void read(CUstream s, CUdeviceptr address, uint64_t tag) {
    CHECK(fake_cuda_launch_read(s, address, kPage, tag) == CUDA_SUCCESS);
  }

  Misuses misuses;
};

inline uint64_t wrong_reads() { return fake_cuda_read_counters().wrong_reads; }

}  // namespace gpushare::fake_cuda
