// The C API: start, jobs and their threads, what holds a block. Each function checks that the
// runtime is there, and does nothing in a forked child. Blocks are in api_allocation.cpp, streams
// in api_streams.cpp, iterations in api_iterations.cpp, questions and limits in api_memory.cpp.
#include "api.h"

#include <pthread.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "../include/gpushare.h"
#include "crash.h"
#include "devices/open.h"
#include "handlers.h"
#include "interruption.h"
#include "runtime.h"
#include "sampler.h"
#include "switches.h"

namespace gpushare {

Runtime* g_runtime = nullptr;
bool g_in_child = false;

namespace {

thread_local char t_error[512];

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

}  // namespace

int fail(const std::string& text) {
  strncpy(t_error, text.c_str(), sizeof t_error - 1);
  return -1;
}

Runtime* active() { return g_in_child ? nullptr : g_runtime; }

}  // namespace gpushare

using namespace gpushare;

extern "C" {

int gs_api_version(void) { return GS_API_VERSION; }
uint64_t gs_telemetry_bytes(void) { return kTelemetryBytes; }
const char* gs_last_error(void) { return t_error; }
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
  gs_account job =
      r->governor().begin_job(static_cast<uint32_t>(std::max(warmup_iterations, 0)), queued);
  if (is_job(job)) interruption_came(static_cast<uint32_t>(job));  // what its last owner was sent
  return job;
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

void gs_interrupt(gs_account job, uint64_t thread, void* kind) {
  send_interruption(is_job(job) ? static_cast<uint32_t>(job) : 0, thread, kind);
}

void gs_hold_back(uint64_t thread) { hold_back(thread); }

int32_t gs_held_sections(uint64_t thread) { return held_sections(thread); }

void gs_let_come(uint64_t thread, int32_t sections) { let_come(thread, sections); }

void gs_hold_back_alone(uint64_t thread) { hold_back_alone(thread); }

void gs_interrupt_came(gs_account job) {
  if (is_job(job)) interruption_came(static_cast<uint32_t>(job));
}

int gs_handlers_begin(void* ready, void* finished, void* forward, const char* ours) {
  return begin_handlers(ready, finished, forward, ours) ? 0 : -1;
}

void gs_handlers_follow(gs_account job, int32_t runs) {
  if (is_job(job)) follow_handlers(static_cast<uint32_t>(job), runs);
}

void gs_handlers_ask(gs_account job, int32_t wanted) {
  if (is_job(job)) ask_for_handlers(static_cast<uint32_t>(job), wanted);
}

void* gs_line_callback(void) { return line_callback(); }

void gs_raise_interrupt(gs_account account) {
  raise_interruption(is_account(account) ? static_cast<uint32_t>(account) : 0, t_error);
}

void gs_nowait(int32_t delta) { thread_state.no_wait += delta; }

void gs_collection(void*, void*) { thread_state.collecting = !thread_state.collecting; }

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
