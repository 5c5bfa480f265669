// Functions of the CUDA runtime by which torch's libraries and extensions wait for the whole
// device, ask for its memory or make streams: in a thread of a job they are about that job. What
// brings a runtime of its own (linked statically, as libraries of CUDA do) or asks the driver is
// not reached.
#include <dlfcn.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <string>

#include "../include/gpushare.h"
#include "api.h"
#include "torch_symbols.h"

using gpushare::active;
using gpushare::beyond_this;
using gpushare::thread_state;

namespace {

// cudaError_t and flags of driver_types.h.
constexpr int kSuccess = 0, kInvalidValue = 1, kSymbolNotFound = 302, kCaptureUnsupported = 900;
constexpr unsigned kNonBlocking = 1;

gs_stream handle(void* stream) { return reinterpret_cast<gs_stream>(stream); }

// Default streams of jobs that were given out as streams of their own. They outlive their jobs.
struct GivenOut {
  std::mutex mutex;
  std::set<void*> streams;
};
GivenOut& given_out() {
  static auto* all = new GivenOut;
  return *all;
}

// Torch's pool makes its streams for the whole process, whichever thread asks first.
bool of_torchs_pool(const void* caller) {
  Dl_info at;
  const char* name = dladdr(caller, &at) && at.dli_fname ? strrchr(at.dli_fname, '/') : nullptr;
  return name && strncmp(name, "/libc10_cuda", 12) == 0;
}

bool in_job(const void* caller) {
  return thread_state.cuda_stream && active() && !of_torchs_pool(caller);
}

// A blocking stream waits for what lies on the default stream, and that for it. Alone, a job's
// default stream is CUDA's own, which sees to that; here it is a stream of the job, and none waits
// for another. So the job has one blocking stream, for all that ask for any: what runs beside each
// other alone runs one after the other, and the order of all is kept.
bool give_out(void** stream, unsigned flags, const void* caller) {
  if (!stream || (flags & kNonBlocking) || !in_job(caller)) return false;
  *stream = reinterpret_cast<void*>(thread_state.cuda_stream);
  std::lock_guard lock(given_out().mutex);
  given_out().streams.insert(*stream);
  return true;
}

// One that waits for nobody: what the job frees may still be in use there.
int note(int result, void* const* stream, const void* caller) {
  if (result == kSuccess && in_job(caller)) gs_stream_begin(gs_thread_account(), handle(*stream));
  return result;
}

// The runtime's own; null where no library that is loaded has it.
template <typename Function>
Function real(const char* name) {
  static std::mutex mutex;
  static auto* known = new std::map<std::string, void*>;
  std::lock_guard lock(mutex);
  void*& found = (*known)[name];
  if (!found) found = beyond_this(name);
  return reinterpret_cast<Function>(found);
}

}  // namespace

extern "C" {

// What fails is told by the runtime itself: it fails as well. But not where the job captures: that
// wait would break the captures of all jobs.
GS_EXPORT int cudaDeviceSynchronize() {
  if (thread_state.cuda_stream && active()) {
    int result = gs_synchronize(gs_thread_account());
    if (result == 0) return kSuccess;
    if (result == GS_CAPTURED) return kCaptureUnsupported;
  }
  auto call = real<int (*)()>("cudaDeviceSynchronize");
  return call ? call() : kSymbolNotFound;
}

// As if the budget were the card, for what asks in C++ how large a workspace may be.
GS_EXPORT int cudaMemGetInfo(size_t* free, size_t* total) {
  gs_memory m{};
  if (thread_state.cuda_stream && active() && gs_memory_get(gs_thread_account(), &m) == 0) {
    if (!free || !total) return kInvalidValue;
    uint64_t taken = m.held_bytes + m.shared_bytes;
    *free = m.limit_bytes - std::min(taken, m.limit_bytes);
    *total = m.budget_bytes;
    return kSuccess;
  }
  auto call = real<int (*)(size_t*, size_t*)>("cudaMemGetInfo");
  return call ? call(free, total) : kSymbolNotFound;
}

GS_EXPORT int cudaStreamCreate(void** stream) {
  if (give_out(stream, 0, __builtin_return_address(0))) return kSuccess;
  auto call = real<int (*)(void**)>("cudaStreamCreate");
  return call ? call(stream) : kSymbolNotFound;
}

GS_EXPORT int cudaStreamCreateWithFlags(void** stream, unsigned flags) {
  const void* caller = __builtin_return_address(0);
  if (give_out(stream, flags, caller)) return kSuccess;
  auto call = real<int (*)(void**, unsigned)>("cudaStreamCreateWithFlags");
  return call ? note(call(stream, flags), stream, caller) : kSymbolNotFound;
}

GS_EXPORT int cudaStreamCreateWithPriority(void** stream, unsigned flags, int priority) {
  const void* caller = __builtin_return_address(0);
  if (give_out(stream, flags, caller)) return kSuccess;
  auto call = real<int (*)(void**, unsigned, int)>("cudaStreamCreateWithPriority");
  return call ? note(call(stream, flags, priority), stream, caller) : kSymbolNotFound;
}

GS_EXPORT int cudaStreamDestroy(void* stream) {
  {
    std::lock_guard lock(given_out().mutex);
    if (given_out().streams.count(stream)) return kSuccess;
  }
  if (stream && gs_stream_account(handle(stream)) != GS_SHARED) gs_stream_end(handle(stream));
  auto call = real<int (*)(void*)>("cudaStreamDestroy");
  return call ? call(stream) : kSymbolNotFound;
}

}  // extern "C"
