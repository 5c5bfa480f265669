// Symbols of torch that this library defines, and so takes over when it is loaded before torch with
// RTLD_GLOBAL. Both are called through the PLT even inside torch's own libraries.
#include <dlfcn.h>

#include <atomic>
#include <cstddef>
#include <stdexcept>

#include "../include/gpushare.h"
#include "runtime.h"

namespace {
std::atomic<int> generator_calls{0};
}

// c10/core/impl/alloc_cpu.h
namespace c10 {
GS_EXPORT void* alloc_cpu(size_t bytes) { return gs_alloc(bytes, -1, gs_thread_account(), 0, 0); }
GS_EXPORT void free_cpu(void* data) { gs_free(data, -1, 0); }
}  // namespace c10

// ATen/CPUGeneratorImpl.h. at::Generator holds one pointer, an intrusive_ptr to its implementation;
// a reference to it is the address of that pointer.
namespace at {
struct Generator;
namespace detail {
GS_EXPORT const Generator& getDefaultCPUGenerator() {
  generator_calls.fetch_add(1, std::memory_order_relaxed);
  if (gpushare::thread_state.cpu_generator)
    return *reinterpret_cast<const Generator*>(&gpushare::thread_state.cpu_generator);
  using Real = const Generator& (*)();
  static const Real real = [] {
    void* torch = dlopen("libtorch_cpu.so", RTLD_LAZY | RTLD_NOLOAD);
    return torch ? reinterpret_cast<Real>(dlsym(torch, "_ZN2at6detail22getDefaultCPUGeneratorEv"))
                 : nullptr;
  }();
  if (!real) throw std::runtime_error("gpushare: torch's default generator was not found");
  return real();
}
}  // namespace detail
}  // namespace at

extern "C" int gs_generator_calls(void) { return generator_calls.load(std::memory_order_relaxed); }
