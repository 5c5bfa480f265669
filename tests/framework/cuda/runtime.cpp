// Stands in for the few functions of the CUDA runtime that torch needs to make and free tensors:
// linked with the fake driver as libcuda.so.1, and preloaded before the real runtime. Nothing
// computes here, and nothing that is seen here says anything about a GPU.
#include <cuda_runtime_api.h>
#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <initializer_list>

#include "cuda_api.h"

#define EXPORTED extern "C" __attribute__((visibility("default")))

using namespace gpushare;

// Of the driver; the fake has the shim's entry points.
#define DECLARED(name, parameters) extern "C" cuda::CUresult name parameters;
using cuda::CUcontext, cuda::CUdevice, cuda::CUdeviceptr, cuda::CUevent, cuda::CUgraph;
using cuda::CUmemAccessDesc, cuda::CUmemAllocationGranularity_flags, cuda::CUmemAllocationProp;
using cuda::CUmemGenericAllocationHandle, cuda::CUresult, cuda::CUstream;
using cuda::CUstreamCaptureMode, cuda::CUstreamCaptureStatus;
GPUSHARE_CUDA_ENTRY_POINTS(DECLARED)

namespace {

constexpr size_t kMemory = size_t{1} << 30;

// What loses the device has the same number in both.
cudaError_t told(cuda::CUresult result) {
  if (result == cuda::CUDA_SUCCESS) return cudaSuccess;
  for (cudaError_t lost : {cudaErrorECCUncorrectable, cudaErrorIllegalAddress,
                           cudaErrorContextIsDestroyed, cudaErrorAssert, cudaErrorLaunchFailure})
    if (static_cast<int>(result) == static_cast<int>(lost)) return lost;
  return cudaErrorUnknown;
}

// The runtime makes its context current in whichever thread calls it.
void enter() {
  static cuda::CUcontext context = [] {
    cuda::CUcontext made = nullptr;
    cuInit(0);  // as the runtime does; in a job the shim has done it
    cuDevicePrimaryCtxRetain(&made, 0);
    return made;
  }();
  cuCtxSetCurrent(context);
}

CUstream driver(cudaStream_t stream) { return reinterpret_cast<CUstream>(stream); }
CUevent driver(cudaEvent_t event) { return reinterpret_cast<CUevent>(event); }

}  // namespace

EXPORTED cudaError_t cudaGetDeviceCount(int* count) {
  cuInit(0);
  return told(cuDeviceGetCount(count));
}
EXPORTED cudaError_t cudaGetDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}
EXPORTED cudaError_t cudaSetDevice(int device) {
  return device == 0 ? cudaSuccess : cudaErrorInvalidDevice;
}
EXPORTED cudaError_t cudaGetLastError() { return cudaSuccess; }
EXPORTED cudaError_t cudaPeekAtLastError() { return cudaSuccess; }
EXPORTED cudaError_t cudaDriverGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}
EXPORTED cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = *greatest = 0;
  return cudaSuccess;
}
EXPORTED cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  memset(properties, 0, sizeof *properties);
  cuDeviceGetName(properties->name, sizeof properties->name, 0);
  properties->major = 9;
  properties->totalGlobalMem = kMemory;
  properties->multiProcessorCount = 1;
  properties->warpSize = 32;
  return cudaSuccess;
}
// For torch's own allocator, beside which the bridge is measured: addresses, and no memory.
EXPORTED cudaError_t cudaMalloc(void** address, size_t bytes) {
  void* found = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (found == MAP_FAILED) return cudaErrorMemoryAllocation;
  *address = found;
  return cudaSuccess;
}
EXPORTED cudaError_t cudaFree(void*) { return cudaSuccess; }  // nobody counts addresses
EXPORTED cudaError_t cudaHostAlloc(void** address, size_t bytes, unsigned) {
  *address = aligned_alloc(4096, (bytes + 4095) & ~size_t{4095});
  return *address ? cudaSuccess : cudaErrorMemoryAllocation;
}
EXPORTED cudaError_t cudaFreeHost(void* address) {
  free(address);
  return cudaSuccess;
}
EXPORTED cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  *free = *total = kMemory;
  return cudaSuccess;
}
EXPORTED cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int) {
  enter();
  return told(cuStreamCreate(reinterpret_cast<CUstream*>(stream), flags));
}
EXPORTED cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  return cudaStreamCreateWithPriority(stream, cudaStreamDefault, 0);
}
EXPORTED cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  enter();
  return told(cuStreamDestroy_v2(reinterpret_cast<CUstream>(stream)));
}
EXPORTED cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  enter();
  return told(cuStreamSynchronize(reinterpret_cast<CUstream>(stream)));
}
EXPORTED cudaError_t cudaDeviceSynchronize() {
  enter();
  return told(cuCtxSynchronize());
}
EXPORTED cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  enter();
  CUstreamCaptureStatus found = cuda::CU_STREAM_CAPTURE_STATUS_NONE;
  cudaError_t result = told(cuStreamIsCapturing(reinterpret_cast<CUstream>(stream), &found));
  *status = static_cast<cudaStreamCaptureStatus>(found);
  return result;
}
EXPORTED cudaError_t cudaStreamQuery(cudaStream_t stream) {
  enter();
  CUresult result = cuStreamQuery(driver(stream));
  return result == cuda::CUDA_ERROR_NOT_READY ? cudaErrorNotReady : told(result);
}
EXPORTED cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags) {
  enter();
  return told(cuStreamWaitEvent(driver(stream), driver(event), flags));
}
EXPORTED cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  enter();
  return told(cuEventCreate(reinterpret_cast<CUevent*>(event), flags));
}
EXPORTED cudaError_t cudaEventDestroy(cudaEvent_t event) {
  enter();
  return told(cuEventDestroy_v2(driver(event)));
}
EXPORTED cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  enter();
  return told(cuEventRecord(driver(event), driver(stream)));
}
EXPORTED cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned) {
  return cudaEventRecord(event, stream);
}
EXPORTED cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  enter();
  return told(cuEventSynchronize(driver(event)));
}
EXPORTED cudaError_t cudaEventQuery(cudaEvent_t event) {
  enter();
  CUresult result = cuEventQuery(driver(event));
  return result == cuda::CUDA_ERROR_NOT_READY ? cudaErrorNotReady : told(result);
}
// What torch asks the driver for itself.
EXPORTED cuda::CUresult cuDevicePrimaryCtxGetState(int, unsigned* flags, int* active) {
  *flags = 0;
  *active = 1;
  return cuda::CUDA_SUCCESS;
}
EXPORTED cuda::CUresult cuDeviceGetAttribute(int* value, int attribute, int) {
  *value = attribute == cudaDevAttrComputeCapabilityMajor ? 9 : 0;
  return cuda::CUDA_SUCCESS;
}
EXPORTED cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr, int) {
  *value = 0;
  return cudaSuccess;
}
EXPORTED cudaError_t cudaDeviceCanAccessPeer(int* can, int, int) {
  *can = 0;
  return cudaSuccess;
}
EXPORTED cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void*) {
  memset(attributes, 0, sizeof *attributes);
  return cudaSuccess;
}

// Captures: the driver's own. A graph can be made of them, and thrown away, but not run.
EXPORTED cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  enter();
  return told(cuStreamBeginCapture_v2(reinterpret_cast<CUstream>(stream),
                                      static_cast<CUstreamCaptureMode>(mode)));
}
EXPORTED cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  enter();
  return told(
      cuStreamEndCapture(reinterpret_cast<CUstream>(stream), reinterpret_cast<CUgraph*>(graph)));
}
EXPORTED cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  enter();
  return told(cuThreadExchangeStreamCaptureMode(reinterpret_cast<CUstreamCaptureMode*>(mode)));
}
// The number of a capture is its stream's here: a stream has one at a time.
EXPORTED cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus* status,
                                              unsigned long long* id, cudaGraph_t*,
                                              const cudaGraphNode_t**, const cudaGraphEdgeData**,
                                              size_t*) {
  if (id) *id = reinterpret_cast<unsigned long long>(stream);
  return cudaStreamIsCapturing(stream, status);
}
EXPORTED cudaError_t cudaGraphGetNodes(cudaGraph_t, cudaGraphNode_t*, size_t* count) {
  *count = 1;
  return cudaSuccess;
}
EXPORTED cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* made, cudaGraph_t graph,
                                                   unsigned long long) {
  *made = reinterpret_cast<cudaGraphExec_t>(graph);
  return cudaSuccess;
}
EXPORTED cudaError_t cudaGraphInstantiate(cudaGraphExec_t* made, cudaGraph_t graph,
                                          unsigned long long flags) {
  return cudaGraphInstantiateWithFlags(made, graph, flags);
}
EXPORTED cudaError_t cudaGraphLaunch(cudaGraphExec_t, cudaStream_t) { return cudaSuccess; }
EXPORTED cudaError_t cudaGraphDestroy(cudaGraph_t) { return cudaSuccess; }
EXPORTED cudaError_t cudaGraphExecDestroy(cudaGraphExec_t) { return cudaSuccess; }
