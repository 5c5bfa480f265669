// The C API: start, jobs and their threads, blocks, streams. Each function checks that the runtime
// is there, and does nothing in a forked child. Iterations are in api_iterations.cpp, questions and
// limits in api_memory.cpp.
#include "api.h"

#include <pthread.h>
#include <stdlib.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <string>

#include "../include/gpushare.h"
#include "crash.h"
#include "devices/open.h"
#include "runtime.h"
#include "sampler.h"
#include "switches.h"

namespace gpushare {

namespace {

Runtime* g_runtime = nullptr;
bool g_in_child = false;
thread_local char t_error[512];
thread_local int t_failure;
// Torch's own granularity: the kernels that libraries choose depend on how their operands lie.
constexpr uint64_t kGpuAlignment = 512;

std::string invalid(const gs_config& c) {
  if (c.page_bytes < 4096 || (c.page_bytes & (c.page_bytes - 1)))
    return "page_bytes must be a power of two of at least 4096";
  if (c.region_bytes < c.page_bytes || c.region_bytes % c.page_bytes)
    return "region_bytes must be a multiple of page_bytes";
  if (c.budget_bytes < c.page_bytes) return "the budget must be at least one page";
  if (c.device_kind < GS_HOST || c.device_kind > GS_CUDA) return "unknown kind of device";
  if (c.policy < GS_UNMANAGED || c.policy > GS_ZICO) return "unknown policy";
  return "";
}

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
    if (g_in_child) throw DeviceFailure("gpushare: a forked process can't use its parent's GPU");
    if (stream == kPerThread) throw DeviceFailure(kNotPerThread);
    stream = known_by_handle(stream);
    bytes = (bytes + kGpuAlignment - 1) & ~(kGpuAlignment - 1);
  }
  bool no_wait = thread_state.no_wait > 0 || thread_state.collecting;
  return r.allocate(bytes, account_for(r, account, stream, arena), stream, no_wait, arena);
}

}  // namespace

int fail(const std::string& text) {
  strncpy(t_error, text.c_str(), sizeof t_error - 1);
  return -1;
}

Runtime* active() { return g_in_child ? nullptr : g_runtime; }
Runtime* runtime() { return g_runtime; }
bool in_forked_child() { return g_in_child; }

}  // namespace gpushare

using namespace gpushare;

extern "C" {

int gs_api_version(void) { return GS_API_VERSION; }
uint64_t gs_telemetry_bytes(void) { return kTelemetryBytes; }
const char* gs_last_error(void) { return t_error; }
int gs_last_failure(void) { return t_failure; }
int32_t gs_device(void) { return g_runtime ? g_runtime->device() : -1; }

int gs_start(const gs_config* c) {
  if (g_runtime) return fail("already started");
  if (std::string wrong = invalid(*c); !wrong.empty()) return fail(wrong);
  Device* device = nullptr;
  try {
    device = open_device(*c);
  } catch (const DeviceFailure& e) {
    return fail(e.what());
  }
  auto* telemetry = new Telemetry;
  if (!telemetry->open(c->telemetry_fd)) return fail("the telemetry memory can't be mapped");
  auto* r = new Runtime(*c, device, telemetry);
  if (!r->governor().pool().reserved())
    return fail("the address space of the pool can't be reserved (is vm.overcommit_memory 2?)");
  r->governor().has_entered = [](uint32_t id) {
    return thread_state.entered && thread_state.account == id;
  };
  if (c->log_fd >= 0) r->governor().log().start(c->log_fd);
  if (c->debug_memory) r->bad_frees().start();
  telemetry->header(kPageBytes, c->page_bytes);
  telemetry->header(kBudget, r->governor().budget_pages() * c->page_bytes);
  telemetry->header(kPoolBase, reinterpret_cast<uint64_t>(r->governor().pool().base()));
  telemetry->header(kPoolReserved, r->governor().pool().pages() * c->page_bytes);
  telemetry->header(kPolicy, static_cast<uint64_t>(c->policy));
  telemetry->header(kMagic, kTelemetryMagic);
  pthread_atfork(nullptr, nullptr, [] { g_in_child = true; });
  __atomic_store_n(&g_runtime, r, __ATOMIC_RELEASE);
  if (c->telemetry_fd >= 0) watch_crashes(telemetry);
  sampler_start(r, c->parent_pid);
  return 0;
}

int gs_log_flush(void) {
  Runtime* r = active();
  if (!r) return 0;
  r->governor().flush_logs();
  int error = r->governor().log().error();
  if (!error) error = r->governor().decisions().error();
  return error ? fail(strerror(error)) : 0;
}

int gs_bad_free_next(gs_bad_free* out) {
  Runtime* r = active();
  BadFree found;
  if (!r || !r->bad_frees().next(&found)) return 0;
  auto account = [](uint32_t id) { return static_cast<gs_account>(id); };
  *out = {found.address,
          found.bytes,
          found.offset,
          found.iteration,
          static_cast<int32_t>(found.kind),
          account(found.freer),
          account(found.owner),
          account(found.freed_by)};
  return 1;
}

gs_account gs_job_begin(int32_t queued, int32_t warmup_iterations) {
  Runtime* r = active();
  if (!r) return -1;
  watch_exits();
  return r->governor().begin_job(static_cast<uint32_t>(std::max(warmup_iterations, 0)), queued);
}

void gs_job_admit(gs_account job) {
  if (Runtime* r = active(); r && is_job(job)) r->governor().admit_job(static_cast<uint32_t>(job));
}

void gs_job_end(gs_account job) {
  if (Runtime* r = active(); r && is_job(job)) r->end_job(static_cast<uint32_t>(job));
}

int gs_stranded(gs_account job, uint64_t out[5]) {
  Runtime* r = active();
  if (!r || !is_job(job)) return 0;
  Stranded s = r->governor().stranded(static_cast<uint32_t>(job));
  uint64_t page = r->governor().pool().page_bytes();
  out[0] = s.for_ns;
  out[1] = s.saved * page;
  out[2] = s.kept * page;
  out[3] = s.budget * page;
  out[4] = s.needs * page;
  return s.saved > 0;
}

int gs_abandon(gs_account job) {
  Runtime* r = active();
  return r && is_job(job) && r->governor().abandon(static_cast<uint32_t>(job));
}

void gs_thread_enter(gs_account job, void* cpu_generator) {
  uint32_t before = thread_state.account;
  thread_state.account = is_job(job) ? static_cast<uint32_t>(job) : GS_SHARED;
  thread_state.cpu_generator = cpu_generator;
  thread_state.cuda_generator = nullptr;
  thread_state.cuda_stream = 0;
  switch_account = thread_state.account;
  Runtime* r = active();
  if (!r) return;
  sampler_enter(thread_state.account);
  thread_state.entered = thread_state.account != GS_SHARED;
  if (before == thread_state.account) return;
  Account& a = r->governor().account(thread_state.account);
  thread_state.leads = thread_state.entered && !a.led.exchange(true);
  r->governor().thread_leaves(before);
  r->governor().thread_enters(thread_state.account);
}

void gs_thread_leave(void) {
  if (Runtime* r = active()) {
    sampler_leave();
    r->governor().thread_leaves(thread_state.account);
  }
  thread_state = {};
  switch_account = GS_SHARED;
}

gs_account gs_thread_account(void) { return static_cast<gs_account>(thread_state.account); }

void gs_cancel(gs_account job) {
  if (Runtime* r = active(); r && is_job(job)) r->governor().cancel(static_cast<uint32_t>(job));
}

void gs_uncancel(gs_account job) {
  if (Runtime* r = active(); r && is_job(job)) r->governor().uncancel(static_cast<uint32_t>(job));
}

void gs_nowait(int32_t delta) { thread_state.no_wait += delta; }

void gs_collection(void*, void*) { thread_state.collecting = !thread_state.collecting; }

void* gs_alloc(uint64_t bytes, int32_t device, gs_account account, gs_stream stream,
               gs_arena arena) {
  if (bytes == 0) return nullptr;
  Runtime* r = g_runtime;
  bool pooled = r && from_pool(*r, device);
  if (pooled && (!g_in_child || r->device() >= 0))
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
  } catch (const DeviceFailure& e) {
    t_failure = GS_FAILED;
    fail(e.what());
  } catch (const std::exception& e) {
    t_failure = GS_OUT_OF_MEMORY;
    fail(e.what());
  }
  return nullptr;
}

void gs_free(void* address, int32_t device, gs_stream) {
  if (!address) return;
  if (g_runtime && g_runtime->contains(address)) {
    if (!g_in_child) g_runtime->release(address);  // a child's copy of the pool is nobody's
    return;
  }
  // An address of a GPU that is not the pool's is nothing that this process could give back.
  if (device < 0 || gs_device() < 0) free(address);
}

void* gs_torch_alloc(size_t bytes, int device, void* stream) {
  try {
    return gs_alloc(bytes, device, gs_thread_account(), reinterpret_cast<gs_stream>(stream), 0);
  } catch (const OutOfMemory& e) {
    throw std::runtime_error(std::string("CUDA out of memory. ") + e.what());
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

void gs_stream_begin(gs_account job, gs_stream stream) {
  if (Runtime* r = active(); r && is_job(job)) r->begin_stream(static_cast<uint32_t>(job), stream);
}

gs_account gs_stream_account(gs_stream stream) {
  Runtime* r = active();
  return r ? static_cast<gs_account>(r->account_of(stream)) : GS_SHARED;
}

void gs_stream_end(gs_stream stream) {
  if (Runtime* r = active()) r->end_stream(stream);
}

void gs_capture_prepare(gs_account account) {
  if (Runtime* r = active(); r && is_account(account))
    r->governor().fences().close(static_cast<uint32_t>(account));
}

void gs_capture_begin(gs_account account) {
  if (Runtime* r = active(); r && is_account(account))
    r->begin_capture(static_cast<uint32_t>(account));
}

void gs_capture_end(gs_account account) {
  if (Runtime* r = active(); r && is_account(account))
    r->end_capture(static_cast<uint32_t>(account));
}

void gs_arena_end(gs_account account, gs_arena arena) {
  if (Runtime* r = active(); r && is_account(account))
    r->end_arena(static_cast<uint32_t>(account), arena);
}

void gs_trim(gs_account account) {
  Runtime* r = active();
  if (r && is_account(account)) r->trim(static_cast<uint32_t>(account));
}

gs_account gs_owner(const void* address) { return g_runtime ? g_runtime->owner(address) : -1; }

uint64_t gs_block_bytes(const void* address) {
  Runtime* r = active();
  return r && r->contains(address) ? r->block_bytes(address) : 0;
}

int gs_check(void) {
  Runtime* r = active();
  if (!r) return fail("not started");
  std::string wrong = r->check();
  return wrong.empty() ? 0 : fail(wrong);
}

}  // extern "C"
