// Stands in for libcudart.so over the fake driver: the functions that the shim stands before.
#include <cstdint>

#include "../src/devices/cuda_api.h"

using namespace gpushare::cuda;

#define DECLARED(name, parameters) extern "C" CUresult name parameters;
GPUSHARE_CUDA_ENTRY_POINTS(DECLARED)

#define EXPORTED extern "C" __attribute__((visibility("default")))

// Calls that came through, by function.
extern "C" {
__attribute__((visibility("default"))) int fake_runtime_waits = 0;
__attribute__((visibility("default"))) int fake_runtime_made = 0;
__attribute__((visibility("default"))) int fake_runtime_destroyed = 0;
}

// The runtime makes its context current in whichever thread calls it.
static void enter() {
  static CUcontext context = [] {
    CUcontext made = nullptr;
    cuDevicePrimaryCtxRetain(&made, 0);
    return made;
  }();
  cuCtxSetCurrent(context);
}

EXPORTED int cudaDeviceSynchronize() {
  enter();
  ++fake_runtime_waits;
  return cuCtxSynchronize();
}

EXPORTED int cudaMemGetInfo(size_t* free, size_t* total) {
  enter();
  return cuMemGetInfo_v2(free, total);
}

EXPORTED int cudaStreamCreateWithPriority(void** stream, unsigned flags, int priority) {
  ++fake_runtime_made;
  if (!stream) return CUDA_ERROR_INVALID_VALUE;
  return cuStreamCreateWithPriority(reinterpret_cast<CUstream*>(stream), flags, priority);
}

EXPORTED int cudaStreamCreateWithFlags(void** stream, unsigned flags) {
  ++fake_runtime_made;
  if (!stream) return CUDA_ERROR_INVALID_VALUE;
  return cuStreamCreate(reinterpret_cast<CUstream*>(stream), flags);
}

EXPORTED int cudaStreamCreate(void** stream) {
  return cudaStreamCreateWithFlags(stream, CU_STREAM_DEFAULT);
}

EXPORTED int cudaStreamDestroy(void* stream) {
  ++fake_runtime_destroyed;
  return cuStreamDestroy_v2(static_cast<CUstream>(stream));
}
