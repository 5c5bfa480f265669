// The C API: blocks, as torch's allocators ask for them, and which streams use them.
#include <stdlib.h>

#include <new>
#include <string>

#include "../include/gpushare.h"
#include "api.h"
#include "interruption.h"
#include "runtime.h"
#include "switches.h"

namespace gpushare {

namespace {

thread_local int t_failure;

// Torch's own granularity: the kernels that libraries choose depend on how their operands lie.
constexpr uint64_t kGpuAlignment = 512;

// Whether memory of that device comes from the pool.
bool from_pool(const Runtime& r, int32_t device) { return r.device() < 0 || device >= 0; }

std::string other_device(int32_t pool, int32_t device) {
  return "gpushare: this run has the memory of cuda:" + std::to_string(pool) +
         " only, but cuda:" + std::to_string(device) + " was asked for";
}

// cuda.h: the legacy stream has a handle of its own besides 0; the per-thread one is another stream
// in each thread, so no event says when what was issued on it is done.
constexpr gs_stream kLegacy = 1, kPerThread = 2;
constexpr const char* kNotPerThread =
    "gpushare: CUDA's per-thread default stream (handle 2) is not supported: it is another stream "
    "in each thread, so nobody knows when memory that was used on it is free; use "
    "torch.cuda.Stream()";

// Inside the budget there was room: others than this run have taken it.
constexpr const char* kDeviceFull = "gpushare: the GPU itself has none left: ";

gs_stream known_by_handle(gs_stream stream) { return stream == kLegacy ? 0 : stream; }

// An arena is of the account that names it.
uint32_t account_for(Runtime& r, gs_account account, gs_stream stream, gs_arena arena) {
  if (is_job(account)) return static_cast<uint32_t>(account);
  return arena ? uint32_t{GS_SHARED} : r.account_of(stream);
}

void* allocate(Runtime& r, uint64_t bytes, int32_t device, gs_account account, gs_stream stream,
               gs_arena arena) {
  if (bytes > r.governor().pool().pages() * r.governor().pool().page_bytes())
    throw OutOfMemory("gpushare: out of memory: asked for more than the pool's address space");
  if (r.device() >= 0) {
    if (device != r.device()) throw DeviceFailure(other_device(r.device(), device));
    if (in_forked_child())
      throw DeviceFailure("gpushare: a forked process can't use its parent's GPU");
    if (stream == kPerThread) throw DeviceFailure(kNotPerThread);
    stream = known_by_handle(stream);
    bytes = (bytes + kGpuAlignment - 1) & ~(kGpuAlignment - 1);
  }
  bool no_wait = thread_state.no_wait > 0 || thread_state.collecting;
  return r.allocate(bytes, account_for(r, account, stream, arena), stream, no_wait, arena);
}

}  // namespace

}  // namespace gpushare

using namespace gpushare;

extern "C" {

int gs_last_failure(void) { return t_failure; }

void* gs_alloc(uint64_t bytes, int32_t device, gs_account account, gs_stream stream,
               gs_arena arena) {
  if (bytes == 0) return nullptr;
  Runtime* r = runtime();
  bool pooled = r && from_pool(*r, device);
  if (pooled && (!in_forked_child() || r->device() >= 0))
    return allocate(*r, bytes, device, account, stream, arena);
  void* p = nullptr;
  if (posix_memalign(&p, 64, bytes) != 0) throw std::bad_alloc();
  return p;
}

void* gs_try_alloc(uint64_t bytes, int32_t device, gs_account account, gs_stream stream,
                   gs_arena arena) {
  t_failure = GS_NO_FAILURE;
  try {
    return gs_alloc(bytes, device, account, stream, arena);
  } catch (const DeviceFull& e) {
    t_failure = GS_OUT_OF_MEMORY;
    fail(kDeviceFull + std::string(e.what()));
  } catch (const DeviceFailure& e) {
    t_failure = GS_FAILED;
    fail(e.what());
  } catch (const Interrupted& e) {
    t_failure = GS_INTERRUPTED;
    fail(e.what());
  } catch (const std::exception& e) {
    t_failure = GS_OUT_OF_MEMORY;
    fail(e.what());
  }
  return nullptr;
}

void gs_free(void* address, int32_t device, gs_stream) {
  if (!address) return;
  if (Runtime* r = runtime(); r && r->contains(address)) {
    if (!in_forked_child()) r->release(address);  // a child's copy of the pool is nobody's
    return;
  }
  // An address of a GPU that is not the pool's is nothing that this process could give back.
  if (device < 0 || gs_device() < 0) free(address);
}

void* gs_torch_alloc(size_t bytes, int device, void* stream) {
  try {
    return gs_alloc(bytes, device, gs_thread_account(), reinterpret_cast<gs_stream>(stream), 0);
  } catch (const Interrupted& e) {
    raise_interruption(thread_state.account, e.what());
  } catch (const OutOfMemory& e) {
    throw std::runtime_error(std::string("CUDA out of memory. ") + e.what());
  } catch (const DeviceFull& e) {
    throw std::runtime_error(std::string("CUDA out of memory. ") + kDeviceFull + e.what());
  }
}

void gs_torch_free(void* address, size_t, int device, void* stream) {
  gs_free(address, device, reinterpret_cast<gs_stream>(stream));
}

void gs_torch_record_stream(void* address, void* stream) {
  gs_record_stream(address, reinterpret_cast<gs_stream>(stream));
}

void gs_torch_empty_cache(void) { gs_trim(gs_thread_account()); }

int gs_record_stream(void* address, gs_stream stream) {
  Runtime* r = active();
  if (!r) return 0;
  if (r->device() >= 0 && stream == kPerThread) return fail(kNotPerThread);
  if (!r->contains(address) || !r->note_use(address, known_by_handle(stream)))
    return fail("no block of the pool starts at this address");
  return 0;
}

}  // extern "C"
