// The part of the CUDA driver's interface that gpushare uses, declared here so that building needs
// no CUDA header. Names, values and layouts are those of the driver's ABI, and symbols carry the
// suffix under which libcuda.so.1 exports them: `cuMemGetInfo` alone is the driver of 2008, with
// 32-bit sizes. shim/tests/cuda_api_check.cpp compares all of it with the real header, where there
// is one.
#pragma once

#include <cstddef>

namespace gpushare::cuda {

using CUdevice = int;
using CUdeviceptr = unsigned long long;
using CUmemGenericAllocationHandle = unsigned long long;

struct CUctx_st;
struct CUstream_st;
struct CUevent_st;
struct CUgraph_st;
using CUcontext = CUctx_st*;
using CUstream = CUstream_st*;
using CUevent = CUevent_st*;
using CUgraph = CUgraph_st*;

// X(name, value)
#define GPUSHARE_CUDA_RESULTS(X)                 \
  X(CUDA_SUCCESS, 0)                             \
  X(CUDA_ERROR_INVALID_VALUE, 1)                 \
  X(CUDA_ERROR_OUT_OF_MEMORY, 2)                 \
  X(CUDA_ERROR_NOT_INITIALIZED, 3)               \
  X(CUDA_ERROR_DEINITIALIZED, 4)                 \
  X(CUDA_ERROR_NO_DEVICE, 100)                   \
  X(CUDA_ERROR_INVALID_DEVICE, 101)              \
  X(CUDA_ERROR_INVALID_CONTEXT, 201)             \
  X(CUDA_ERROR_INVALID_HANDLE, 400)              \
  X(CUDA_ERROR_ILLEGAL_STATE, 401)               \
  X(CUDA_ERROR_NOT_FOUND, 500)                   \
  X(CUDA_ERROR_NOT_READY, 600)                   \
  X(CUDA_ERROR_ILLEGAL_ADDRESS, 700)             \
  X(CUDA_ERROR_CONTEXT_IS_DESTROYED, 709)        \
  X(CUDA_ERROR_LAUNCH_FAILED, 719)               \
  X(CUDA_ERROR_NOT_PERMITTED, 800)               \
  X(CUDA_ERROR_NOT_SUPPORTED, 801)               \
  X(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, 900)  \
  X(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, 901)  \
  X(CUDA_ERROR_STREAM_CAPTURE_MERGE, 902)        \
  X(CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, 903)    \
  X(CUDA_ERROR_STREAM_CAPTURE_UNJOINED, 904)     \
  X(CUDA_ERROR_STREAM_CAPTURE_ISOLATION, 905)    \
  X(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, 906)     \
  X(CUDA_ERROR_CAPTURED_EVENT, 907)              \
  X(CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, 908) \
  X(CUDA_ERROR_TIMEOUT, 909)                     \
  X(CUDA_ERROR_UNKNOWN, 999)

// The underlying types are fixed, so a result that is not in the list is still a valid value.
enum CUresult : unsigned {
#define GPUSHARE_CUDA_RESULT(name, value) name = value,
  GPUSHARE_CUDA_RESULTS(GPUSHARE_CUDA_RESULT)
#undef GPUSHARE_CUDA_RESULT
};

enum CUstream_flags : unsigned { CU_STREAM_DEFAULT = 0, CU_STREAM_NON_BLOCKING = 1 };

enum CUevent_flags : unsigned {
  CU_EVENT_DEFAULT = 0,
  CU_EVENT_BLOCKING_SYNC = 1,
  CU_EVENT_DISABLE_TIMING = 2,
  CU_EVENT_INTERPROCESS = 4,
};

enum CUstreamCaptureStatus : unsigned {
  CU_STREAM_CAPTURE_STATUS_NONE = 0,
  CU_STREAM_CAPTURE_STATUS_ACTIVE = 1,
  CU_STREAM_CAPTURE_STATUS_INVALIDATED = 2,
};

enum CUstreamCaptureMode : unsigned {
  CU_STREAM_CAPTURE_MODE_GLOBAL = 0,
  CU_STREAM_CAPTURE_MODE_THREAD_LOCAL = 1,
  CU_STREAM_CAPTURE_MODE_RELAXED = 2,
};

enum CUmemAllocationType : unsigned { CU_MEM_ALLOCATION_TYPE_PINNED = 1 };

enum CUmemAllocationHandleType : unsigned {
  CU_MEM_HANDLE_TYPE_NONE = 0,
  CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR = 1,
};

enum CUmemLocationType : unsigned { CU_MEM_LOCATION_TYPE_DEVICE = 1 };

enum CUmemAccess_flags : unsigned {
  CU_MEM_ACCESS_FLAGS_PROT_NONE = 0,
  CU_MEM_ACCESS_FLAGS_PROT_READ = 1,
  CU_MEM_ACCESS_FLAGS_PROT_READWRITE = 3,
};

enum CUmemAllocationGranularity_flags : unsigned {
  CU_MEM_ALLOC_GRANULARITY_MINIMUM = 0,
  CU_MEM_ALLOC_GRANULARITY_RECOMMENDED = 1,
};

struct CUmemLocation {
  CUmemLocationType type;
  int id;
};

struct CUmemAllocationProp {
  CUmemAllocationType type;
  CUmemAllocationHandleType requestedHandleTypes;
  CUmemLocation location;
  void* win32HandleMetaData;
  struct {
    unsigned char compressionType;
    unsigned char gpuDirectRDMACapable;
    unsigned short usage;
    unsigned char reserved[4];
  } allocFlags;
};

struct CUmemAccessDesc {
  CUmemLocation location;
  CUmemAccess_flags flags;
};

// X(exported symbol, parameters); every one returns a CUresult.
#define GPUSHARE_CUDA_ENTRY_POINTS(X)                                                              \
  X(cuInit, (unsigned flags))                                                                      \
  X(cuDriverGetVersion, (int* version))                                                            \
  X(cuGetErrorName, (CUresult error, const char** name))                                           \
  X(cuGetErrorString, (CUresult error, const char** text))                                         \
  X(cuDeviceGetCount, (int* count))                                                                \
  X(cuDeviceGet, (CUdevice * device, int ordinal))                                                 \
  X(cuDeviceGetName, (char* name, int length, CUdevice device))                                    \
  X(cuDevicePrimaryCtxRetain, (CUcontext * context, CUdevice device))                              \
  X(cuDevicePrimaryCtxRelease_v2, (CUdevice device))                                               \
  X(cuCtxSetCurrent, (CUcontext context))                                                          \
  X(cuCtxGetCurrent, (CUcontext * context))                                                        \
  X(cuCtxSynchronize, ())                                                                          \
  X(cuMemGetInfo_v2, (size_t * free, size_t * total))                                              \
  X(cuMemGetAllocationGranularity, (size_t * granularity, const CUmemAllocationProp* properties,   \
                                    CUmemAllocationGranularity_flags option))                      \
  X(cuMemAddressReserve, (CUdeviceptr * address, size_t bytes, size_t alignment, CUdeviceptr hint, \
                          unsigned long long flags))                                               \
  X(cuMemAddressFree, (CUdeviceptr address, size_t bytes))                                         \
  X(cuMemCreate, (CUmemGenericAllocationHandle * handle, size_t bytes,                             \
                  const CUmemAllocationProp* properties, unsigned long long flags))                \
  X(cuMemRelease, (CUmemGenericAllocationHandle handle))                                           \
  X(cuMemMap, (CUdeviceptr address, size_t bytes, size_t offset,                                   \
               CUmemGenericAllocationHandle handle, unsigned long long flags))                     \
  X(cuMemUnmap, (CUdeviceptr address, size_t bytes))                                               \
  X(cuMemSetAccess,                                                                                \
    (CUdeviceptr address, size_t bytes, const CUmemAccessDesc* descriptions, size_t count))        \
  X(cuMemcpyDtoH_v2, (void* to, CUdeviceptr from, size_t bytes))                                   \
  X(cuMemcpyHtoD_v2, (CUdeviceptr to, const void* from, size_t bytes))                             \
  X(cuMemcpyDtoHAsync_v2, (void* to, CUdeviceptr from, size_t bytes, CUstream stream))             \
  X(cuMemcpyHtoDAsync_v2, (CUdeviceptr to, const void* from, size_t bytes, CUstream stream))       \
  X(cuMemsetD8Async, (CUdeviceptr address, unsigned char value, size_t bytes, CUstream stream))    \
  X(cuStreamCreate, (CUstream * stream, unsigned flags))                                           \
  X(cuStreamCreateWithPriority, (CUstream * stream, unsigned flags, int priority))                 \
  X(cuStreamDestroy_v2, (CUstream stream))                                                         \
  X(cuStreamQuery, (CUstream stream))                                                              \
  X(cuStreamSynchronize, (CUstream stream))                                                        \
  X(cuStreamWaitEvent, (CUstream stream, CUevent event, unsigned flags))                           \
  X(cuStreamIsCapturing, (CUstream stream, CUstreamCaptureStatus * status))                        \
  X(cuStreamBeginCapture_v2, (CUstream stream, CUstreamCaptureMode mode))                          \
  X(cuStreamEndCapture, (CUstream stream, CUgraph * graph))                                        \
  X(cuThreadExchangeStreamCaptureMode, (CUstreamCaptureMode * mode))                               \
  X(cuEventCreate, (CUevent * event, unsigned flags))                                              \
  X(cuEventDestroy_v2, (CUevent event))                                                            \
  X(cuEventRecord, (CUevent event, CUstream stream))                                               \
  X(cuEventQuery, (CUevent event))                                                                 \
  X(cuEventSynchronize, (CUevent event))

}  // namespace gpushare::cuda
