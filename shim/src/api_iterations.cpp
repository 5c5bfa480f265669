// The C API of iterations: marks, curves, permits, parking for a fork.
#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "api.h"
#include "clock.h"
#include "cpu_wait.h"
#include "permits.h"
#include "progress.h"

using namespace gpushare;

extern "C" {

int32_t gs_iteration_watch(gs_account job, int32_t nodes) {
  Runtime* r = active();
  if (!r || !is_job(job)) return 0;
  return std::max(0, r->governor().watch(static_cast<uint32_t>(job), nodes));
}

void gs_iteration_mark(gs_account job) {
  Runtime* r = active();
  if (!r || !is_job(job)) return;
  uint32_t id = static_cast<uint32_t>(job);
  Telemetry& telemetry = r->telemetry();
  if (telemetry.slot(id, kState) == kSetUp && telemetry.slot(id, kIterations) == 0 &&
      telemetry.slot(id, kCpuWaitBeforeNs) == 0)
    telemetry.slot(id, kCpuWaitBeforeNs, waited_for_processor_ns());
  r->governor().mark(id);
}

int gs_iteration_door(void) {
  Runtime* r = active();
  uint32_t job = thread_state.account;
  if (!r || !is_job(static_cast<gs_account>(job)) || !r->governor().account(job).at_door())
    return 0;
  try {
    r->pass_door(job);
    return 0;
  } catch (const OutOfMemory& e) {
    return fail(e.what());
  }
}

int gs_curve_set(gs_account job, const uint64_t* held, const uint64_t* time_ns, uint64_t n,
                 uint64_t residue_bytes, uint64_t duration_ns) {
  Runtime* r = active();
  if (!r || !is_job(job) || n == 0 || n > Recorder::kCapacity) return fail("no such job or curve");
  uint64_t page = r->governor().pool().page_bytes();
  std::vector<uint32_t> pages(n);
  std::transform(held, held + n, pages.begin(),
                 [page](uint64_t b) { return static_cast<uint32_t>((b + page - 1) / page); });
  r->governor().set_curve(static_cast<uint32_t>(job), std::move(pages), {time_ns, time_ns + n},
                          (residue_bytes + page - 1) / page, duration_ns);
  return 0;
}

uint64_t gs_curve_get(gs_account job, uint64_t* held, uint64_t* time_ns, uint64_t capacity,
                      uint64_t about[3]) {
  Runtime* r = active();
  if (!r || !is_job(job)) return 0;
  uint64_t page = r->governor().pool().page_bytes(), length = 0;
  r->governor().inspect(static_cast<uint32_t>(job), [&](const Account& a) {
    length = a.curve.length();
    uint64_t last = 0;  // averages of iterations with different lengths may go back
    for (uint32_t i = 0; i < std::min(length, capacity); ++i) {
      held[i] = a.curve.held(i) * page;
      time_ns[i] = last = std::max(last, a.curve.time(i));
    }
    about[0] = a.curve.residue() * page;
    about[1] = a.curve.duration_ns();
    about[2] = a.curve_version;
  });
  return length;
}

uint64_t gs_profiled_log(gs_account job, void* out, uint64_t capacity) {
  Runtime* r = active();
  if (!r || !is_job(job)) return 0;
  uint64_t bytes = 0;
  r->governor().inspect(static_cast<uint32_t>(job), [&](const Account& a) {
    bytes = a.profiled_log.size() * sizeof(LogRecord);
    if (capacity) memcpy(out, a.profiled_log.data(), std::min(bytes, capacity));
  });
  return bytes;
}

int gs_progress_get(gs_account job, uint64_t out[GS_PROGRESS_FIGURES]) {
  Runtime* r = active();
  if (!r || !is_job(job)) return fail("no such job");
  r->governor().inspect(static_cast<uint32_t>(job), [&](const Account& a) {
    tell_progress(a, r->telemetry(), r->governor().pool().page_bytes(), now_ns(), out);
  });
  return 0;
}

int gs_peak_kinds(gs_account job, uint64_t out[3]) {
  Runtime* r = active();
  if (!r || !is_job(job)) return fail("no such job");
  bool known = false;
  r->governor().inspect(static_cast<uint32_t>(job), [&](const Account& a) {
    known = a.curve.known();
    out[0] = a.at_peak.persistent;
    out[1] = a.at_peak.activation;
    out[2] = a.at_peak.temporary;
  });
  return known ? 0 : fail("the job has no profile yet");
}

void gs_permits_set(const gs_permit* permits, uint32_t count) {
  if (Runtime* r = active()) r->governor().set_permits(pair_permits({permits, count}, is_job));
}

int gs_order_set(int32_t order, uint64_t quantum_ns) {
  if (order < GS_FIFO || order > GS_RANKED) return fail("no such order");
  if (Runtime* r = active()) r->governor().set_order(static_cast<Order>(order), quantum_ns);
  return 0;
}

void gs_split_set(uint64_t bytes) {
  Runtime* r = active();
  if (!r) return;
  uint64_t page = r->governor().pool().page_bytes();
  r->governor().set_split(bytes == UINT64_MAX ? Segments::kByCurve : (bytes + page - 1) / page);
}

void gs_rank_set(gs_account job, int64_t rank) {
  if (Runtime* r = active(); r && is_job(job))
    r->governor().set_rank(static_cast<uint32_t>(job), rank);
}

void gs_aside_set(uint64_t accounts) {
  if (Runtime* r = active()) r->governor().set_aside(accounts);
}

uint64_t gs_copied_out(void) {
  Runtime* r = active();
  return r ? r->governor().copied_out() : 0;
}

void gs_decisions_start(int32_t fd) {
  if (Runtime* r = active()) r->governor().decisions().start(fd);
}

uint64_t gs_wait_change(uint64_t seen, uint64_t timeout_ns) {
  Runtime* r = active();
  return r ? r->governor().wait_change(seen, timeout_ns) : seen;
}

int gs_park_others(gs_account job, uint64_t timeout_ns) {
  Runtime* r = active();
  if (!r || !is_job(job)) return 1;
  return r->governor().park_others(static_cast<uint32_t>(job), timeout_ns);
}

void gs_await_fork(gs_account job, int waits) {
  Runtime* r = active();
  if (!r || !is_job(job)) return;
  thread_state.awaits_fork = false;
  r->governor().await_turn_to_fork(static_cast<uint32_t>(job), waits != 0);
  thread_state.awaits_fork = waits != 0;
}

void gs_unpark_others(gs_account job) {
  if (Runtime* r = active(); r && is_job(job))
    r->governor().unpark_others(static_cast<uint32_t>(job));
}

}  // extern "C"
