// Symbols of torch that are taken over by a library that is loaded before it: the allocation of CPU
// tensors and the default generator of a CUDA device.
#include <dlfcn.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#define EXPORTED __attribute__((visibility("default")))

namespace {
std::atomic<int64_t> allocations{0}, frees{0}, generator_calls{0};
// An at::Generator is one pointer to its implementation; this is such a pointer, of this thread.
thread_local void* generator = nullptr;

void* in_torch(const char* library, const char* symbol) {
  void* loaded = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
  void* found = loaded ? dlsym(loaded, symbol) : nullptr;
  if (!found) abort();
  return found;
}
}  // namespace

namespace c10 {
EXPORTED void* alloc_cpu(size_t bytes) {
  ++allocations;
  return bytes ? aligned_alloc(64, (bytes + 63) & ~size_t{63}) : nullptr;
}
EXPORTED void free_cpu(void* address) {
  ++frees;
  free(address);
}
}  // namespace c10

namespace at {
struct Generator;
namespace cuda::detail {
EXPORTED const Generator& getDefaultCUDAGenerator(int8_t device) {
  ++generator_calls;
  if (generator) return *reinterpret_cast<const Generator*>(&generator);
  using Real = const Generator& (*)(int8_t);
  static const auto real = reinterpret_cast<Real>(
      in_torch("libtorch_cuda.so", "_ZN2at4cuda6detail23getDefaultCUDAGeneratorEa"));
  return real(device);
}
}  // namespace cuda::detail
}  // namespace at

extern "C" {
EXPORTED void set_thread_generator(void* implementation) { generator = implementation; }
EXPORTED int64_t preload_allocations() { return allocations; }
EXPORTED int64_t preload_frees() { return frees; }
EXPORTED int64_t preload_generator_calls() { return generator_calls; }
}
