// Streams and random numbers of torch on a GPU, per job. Where the calling thread has none of its
// own (`gs_thread_cuda_stream`, `gs_thread_cuda_generator`) torch's own function answers.
#include <cstdint>

#include "../include/gpushare.h"
#include "runtime.h"
#include "torch_symbols.h"

using gpushare::in_library;
using gpushare::thread_state;

namespace {
constexpr const char* kStreams = "libc10_cuda.so";

// A job sees one device: index 0, or -1 for the current one.
bool of_job(int8_t device) { return thread_state.cuda_stream && device <= 0; }
}  // namespace

// ATen/cuda/CUDAGeneratorImpl.h; at::Generator is as in interpose.cpp.
namespace at {
struct Generator;
namespace cuda::detail {
GS_EXPORT const Generator& getDefaultCUDAGenerator(int8_t device) {
  if (thread_state.cuda_generator && device <= 0)
    return *reinterpret_cast<const Generator*>(&thread_state.cuda_generator);
  using Real = const Generator& (*)(int8_t);
  static const Real real = reinterpret_cast<Real>(
      in_library("libtorch_cuda.so", "_ZN2at4cuda6detail23getDefaultCUDAGeneratorEa",
                 "default generator of a GPU"));
  return real(device);
}
}  // namespace cuda::detail
}  // namespace at

// c10/cuda/CUDAStream.h. A CUDAStream is a device and a number, returned in registers.
namespace c10::cuda {

struct CUDAStream {
  int8_t device_type, device_index;
  int64_t id;
};
static_assert(sizeof(CUDAStream) == 16);

namespace {

CUDAStream wrapped(gs_stream stream) {
  using Real = CUDAStream (*)(void*, int8_t);
  static const Real real = reinterpret_cast<Real>(in_library(
      kStreams, "_ZN3c104cuda21getStreamFromExternalEP11CUstream_sta", "wrapper of streams"));
  return real(reinterpret_cast<void*>(stream), 0);
}

// Null if no stream can be had: torch's pool says why.
gs_stream of_own(int priority, int8_t device) {
  if (!of_job(device)) return 0;
  return gs_side_stream(gs_thread_account(), priority);
}

}  // namespace

GS_EXPORT CUDAStream getDefaultCUDAStream(int8_t device) {
  if (of_job(device)) return wrapped(thread_state.cuda_stream);
  using Real = CUDAStream (*)(int8_t);
  static const Real real = reinterpret_cast<Real>(
      in_library(kStreams, "_ZN3c104cuda20getDefaultCUDAStreamEa", "default stream"));
  return real(device);
}

GS_EXPORT CUDAStream getStreamFromPool(int priority, int8_t device) {
  if (gs_stream own = of_own(priority, device)) return wrapped(own);
  using Real = CUDAStream (*)(int, int8_t);
  static const Real real = reinterpret_cast<Real>(
      in_library(kStreams, "_ZN3c104cuda17getStreamFromPoolEia", "pool of streams"));
  return real(priority, device);
}

GS_EXPORT CUDAStream getStreamFromPool(bool urgent, int8_t device) {
  if (gs_stream own = of_own(urgent ? gpushare::SideStreams::kMostUrgent : 0, device))
    return wrapped(own);
  using Real = CUDAStream (*)(bool, int8_t);
  static const Real real = reinterpret_cast<Real>(
      in_library(kStreams, "_ZN3c104cuda17getStreamFromPoolEba", "pool of streams"));
  return real(urgent, device);
}

// c10/cuda/CUDAFunctions.h; for a torch that has the runtime within itself, where
// interpose_cuda_runtime.cpp does not see its calls. What fails is told in torch's own words: its
// function fails as well.
GS_EXPORT void device_synchronize() {
  if (thread_state.cuda_stream && gs_synchronize(gs_thread_account()) == 0) return;
  using Real = void (*)();
  static const Real real = reinterpret_cast<Real>(
      in_library(kStreams, "_ZN3c104cuda18device_synchronizeEv", "wait for a device"));
  real();
}

}  // namespace c10::cuda
