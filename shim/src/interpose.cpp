// Symbols of torch that this library defines, and so takes over when it is loaded before torch with
// RTLD_GLOBAL. All are called through the PLT even inside torch's own libraries.
#include <atomic>
#include <cstddef>
#include <new>
#include <string>

#include "../include/gpushare.h"
#include "api.h"
#include "interruption.h"
#include "torch_symbols.h"

using gpushare::in_torch;

namespace {
std::atomic<bool> graph_seen{false};

// Torch's own words, which libraries look for that try again with a smaller batch.
std::string failed_on_cpu(size_t bytes, const char* why) {
  return "DefaultCPUAllocator: can't allocate memory: you tried to allocate " +
         std::to_string(bytes) + " bytes. " + why;
}
}  // namespace

// c10/core/impl/alloc_cpu.h
namespace c10 {
GS_EXPORT void* alloc_cpu(size_t bytes) {
  try {
    return gs_alloc(bytes, -1, gs_thread_account(), 0, 0);
  } catch (const gpushare::Interrupted& e) {
    gpushare::raise_interruption(gpushare::thread_state.account, failed_on_cpu(bytes, e.what()));
  } catch (const gpushare::OutOfMemory& e) {
    throw gpushare::OutOfMemory(failed_on_cpu(bytes, e.what()));
  } catch (const std::bad_alloc&) {
    throw gpushare::OutOfMemory(failed_on_cpu(bytes, "The system has no more."));
  }
}
GS_EXPORT void free_cpu(void* data) { gs_free(data, -1, 0); }
}  // namespace c10

// ATen/CPUGeneratorImpl.h. at::Generator holds one pointer, an intrusive_ptr to its implementation;
// a reference to it is the address of that pointer.
namespace at {
struct Generator;
namespace detail {
GS_EXPORT const Generator& getDefaultCPUGenerator() {
  if (gpushare::thread_state.cpu_generator)
    return *reinterpret_cast<const Generator*>(&gpushare::thread_state.cpu_generator);
  using Real = const Generator& (*)();
  static const Real real = reinterpret_cast<Real>(
      in_torch("_ZN2at6detail22getDefaultCPUGeneratorEv", "default generator"));
  return real();
}
}  // namespace detail

// c10/core/GradMode.h
static bool grad_mode() {
  using Real = bool (*)();
  static const Real real =
      reinterpret_cast<Real>(in_torch("_ZN3c108GradMode10is_enabledEv", "grad mode"));
  return real();
}

// ATen/SequenceNumber.h. Every node of an autograd graph takes its number here when it is made,
// before the operation allocates its result: the first node is the begin of a first forward pass.
namespace sequence_number {
GS_EXPORT uint64_t get_and_increment() {
  if (!graph_seen.load(std::memory_order_relaxed)) graph_seen = true;
  gpushare::Runtime* r = gpushare::active();  // a forked child has nobody to open its locks
  if (uint32_t account = gpushare::thread_state.account; account && r)
    r->governor().note_graph(account, grad_mode);
  using Real = uint64_t (*)();
  static const Real real = reinterpret_cast<Real>(
      in_torch("_ZN2at15sequence_number17get_and_incrementEv", "numbering of graph nodes"));
  return real();
}
}  // namespace sequence_number
}  // namespace at

extern "C" int gs_graph_seen(void) { return graph_seen; }
