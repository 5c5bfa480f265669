// Compares gpushare's own declarations of the CUDA driver with the real header, while compiling.
// Built only where that header is found.
#include <cuda.h>

#include <type_traits>

#include "../src/devices/cuda_api.h"
#include "cuda_kernel_api.h"

namespace {

namespace own = gpushare::cuda;

// Two types agree if a caller that knows one can call a function that was compiled with the other.
template <class Own, class Real>
struct Agree : std::is_same<Own, Real> {};

template <class Own, class Real>
  requires(std::is_enum_v<Own> && std::is_enum_v<Real>)
struct Agree<Own, Real> : std::bool_constant<sizeof(Own) == sizeof(Real)> {};

template <class Own, class Real>
struct Agree<Own*, Real*> : Agree<Own, Real> {};
template <class Own, class Real>
struct Agree<const Own, const Real> : Agree<Own, Real> {};

template <class OwnR, class... Own, class RealR, class... Real>
  requires(sizeof...(Own) == sizeof...(Real))
struct Agree<OwnR(Own...), RealR(Real...)>
    : std::bool_constant<Agree<OwnR, RealR>::value && (Agree<Own, Real>::value && ...)> {};

#define SAME_STRUCT(name) \
  template <>             \
  struct Agree<own::name, ::name> : std::true_type {};
SAME_STRUCT(CUctx_st)
SAME_STRUCT(CUstream_st)
SAME_STRUCT(CUevent_st)
SAME_STRUCT(CUgraph_st)
SAME_STRUCT(CUmod_st)
SAME_STRUCT(CUfunc_st)
SAME_STRUCT(CUmemLocation)
SAME_STRUCT(CUmemAllocationProp)
SAME_STRUCT(CUmemAccessDesc)

static_assert(Agree<own::CUdevice, ::CUdevice>::value);
static_assert(Agree<own::CUdeviceptr, ::CUdeviceptr>::value);
static_assert(Agree<own::CUmemGenericAllocationHandle, ::CUmemGenericAllocationHandle>::value);

// Not a tautology: what differs must not agree.
static_assert(!Agree<int(int*), int(long*)>::value);
static_assert(!Agree<int(const void*), int(void*)>::value);
static_assert(!Agree<own::CUstream, ::CUevent>::value);

}  // namespace

// In a namespace of its own inside the declarations' one, so that the parameters mean our types.
namespace gpushare::cuda::functions {
#define OWN_FUNCTION(name, parameters) using name = CUresult parameters;
GPUSHARE_CUDA_ENTRY_POINTS(OWN_FUNCTION)
GPUSHARE_KERNEL_ENTRY_POINTS(OWN_FUNCTION)
}  // namespace gpushare::cuda::functions

namespace {

#define SAME_FUNCTION(name, parameters) \
  static_assert(Agree<own::functions::name, decltype(::name)>::value, #name);
GPUSHARE_CUDA_ENTRY_POINTS(SAME_FUNCTION)
GPUSHARE_KERNEL_ENTRY_POINTS(SAME_FUNCTION)

#define SAME_VALUE(name) static_assert(unsigned{own::name} == unsigned{::name}, #name);
#define SAME_RESULT(name, value) SAME_VALUE(name)
GPUSHARE_CUDA_RESULTS(SAME_RESULT)
SAME_VALUE(CU_STREAM_DEFAULT)
SAME_VALUE(CU_STREAM_NON_BLOCKING)
SAME_VALUE(CU_EVENT_DEFAULT)
SAME_VALUE(CU_EVENT_BLOCKING_SYNC)
SAME_VALUE(CU_EVENT_DISABLE_TIMING)
SAME_VALUE(CU_EVENT_INTERPROCESS)
SAME_VALUE(CU_STREAM_CAPTURE_STATUS_NONE)
SAME_VALUE(CU_STREAM_CAPTURE_STATUS_ACTIVE)
SAME_VALUE(CU_STREAM_CAPTURE_STATUS_INVALIDATED)
SAME_VALUE(CU_STREAM_CAPTURE_MODE_GLOBAL)
SAME_VALUE(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL)
SAME_VALUE(CU_STREAM_CAPTURE_MODE_RELAXED)
SAME_VALUE(CU_MEM_ALLOCATION_TYPE_PINNED)
SAME_VALUE(CU_MEM_HANDLE_TYPE_NONE)
SAME_VALUE(CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
SAME_VALUE(CU_MEM_LOCATION_TYPE_DEVICE)
SAME_VALUE(CU_MEM_ACCESS_FLAGS_PROT_NONE)
SAME_VALUE(CU_MEM_ACCESS_FLAGS_PROT_READ)
SAME_VALUE(CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
SAME_VALUE(CU_MEM_ALLOC_GRANULARITY_MINIMUM)
SAME_VALUE(CU_MEM_ALLOC_GRANULARITY_RECOMMENDED)

#define SAME_SIZE(type)                                                                       \
  static_assert(sizeof(own::type) == sizeof(::type) && alignof(own::type) == alignof(::type), \
                #type);
#define SAME_PLACE(type, member)                                           \
  static_assert(offsetof(own::type, member) == offsetof(::type, member) && \
                    sizeof(own::type::member) == sizeof(::type::member),   \
                #type "::" #member);
SAME_SIZE(CUmemLocation)
SAME_PLACE(CUmemLocation, type)
SAME_PLACE(CUmemLocation, id)
SAME_SIZE(CUmemAccessDesc)
SAME_PLACE(CUmemAccessDesc, location)
SAME_PLACE(CUmemAccessDesc, flags)
SAME_SIZE(CUmemAllocationProp)
SAME_PLACE(CUmemAllocationProp, type)
SAME_PLACE(CUmemAllocationProp, requestedHandleTypes)
SAME_PLACE(CUmemAllocationProp, location)
SAME_PLACE(CUmemAllocationProp, win32HandleMetaData)
SAME_PLACE(CUmemAllocationProp, allocFlags.compressionType)
SAME_PLACE(CUmemAllocationProp, allocFlags.gpuDirectRDMACapable)
SAME_PLACE(CUmemAllocationProp, allocFlags.usage)
SAME_PLACE(CUmemAllocationProp, allocFlags.reserved)

}  // namespace
