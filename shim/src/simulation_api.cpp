// The C API of the simulator. No runtime is needed, and none is touched.
#include <algorithm>
#include <cstring>
#include <exception>

#include "../include/gpushare_simulation.h"
#include "permits.h"
#include "progress.h"
#include "simulation.h"

using namespace gpushare;

struct gs_sim : Simulation {
  using Simulation::Simulation;
  std::string error;
};

namespace {

bool known(const gs_sim* s, gs_account job) {
  return job > 0 && job < GS_MAX_ACCOUNTS &&
         const_cast<gs_sim*>(s)->governor().account(static_cast<uint32_t>(job)).live_job();
}

uint64_t pages(const gs_sim* s, uint64_t bytes) {
  return (bytes + s->page_bytes() - 1) / s->page_bytes();
}

int answer(Simulation::Answer a) { return static_cast<int>(a); }

}  // namespace

extern "C" {

gs_sim* gs_sim_begin(int32_t policy, uint64_t page_bytes, uint64_t budget_bytes) {
  bool odd = page_bytes < 4096 || (page_bytes & (page_bytes - 1));
  if (odd || budget_bytes < page_bytes || policy < GS_UNMANAGED || policy > GS_ZICO) return nullptr;
  try {
    return new gs_sim(static_cast<Policy>(policy), page_bytes, budget_bytes / page_bytes);
  } catch (const std::exception&) {
    return nullptr;
  }
}

void gs_sim_end(gs_sim* s) { delete s; }
void gs_sim_time(gs_sim* s, uint64_t now_ns) { s->set_time(now_ns); }

gs_account gs_sim_job_begin(gs_sim* s, const uint64_t* held, const uint64_t* time_ns, uint64_t n,
                            uint64_t residue_bytes, uint64_t duration_ns) {
  if (n > Recorder::kCapacity) return -1;
  std::vector<uint32_t> held_pages(n);
  std::transform(held, held + n, held_pages.begin(),
                 [s](uint64_t b) { return static_cast<uint32_t>(pages(s, b)); });
  uint32_t id = s->begin_job(std::move(held_pages), {time_ns, time_ns + n}, pages(s, residue_bytes),
                             duration_ns);
  return id ? static_cast<gs_account>(id) : -1;
}

int gs_sim_hold(gs_sim* s, gs_account job, uint64_t bytes) {
  return known(s, job) ? answer(s->hold(static_cast<uint32_t>(job), pages(s, bytes))) : -1;
}

void gs_sim_free(gs_sim* s, gs_account job, uint64_t bytes) {
  if (known(s, job)) s->free_down_to(static_cast<uint32_t>(job), pages(s, bytes));
}

int gs_sim_door(gs_sim* s, gs_account job) {
  return known(s, job) ? answer(s->door(static_cast<uint32_t>(job))) : -1;
}

int gs_sim_look(gs_sim* s, gs_account job) {
  return known(s, job) ? answer(s->look(static_cast<uint32_t>(job))) : -1;
}

uint64_t gs_sim_ready(gs_sim* s) { return s->ready(); }
const char* gs_sim_refusal(gs_sim* s) { return s->refusal().c_str(); }

void gs_sim_job_end(gs_sim* s, gs_account job) {
  if (known(s, job)) s->end_job(static_cast<uint32_t>(job));
}

void gs_sim_tick(gs_sim* s) { s->tick(); }
void gs_sim_look_at_doors(gs_sim* s) { s->look_at_doors(); }
uint64_t gs_sim_next_look(gs_sim* s) { return s->next_look(); }
uint64_t gs_sim_version(gs_sim* s) { return s->version(); }

const char* gs_sim_budget(gs_sim* s, uint64_t bytes) {
  s->error = s->set_budget(bytes / s->page_bytes());
  return s->error.c_str();
}

void gs_sim_permits(gs_sim* s, const gs_permit* permits, uint32_t count) {
  s->set_permits(pair_permits({permits, count}, [&](gs_account job) { return known(s, job); }));
}

int gs_sim_order(gs_sim* s, int32_t order, uint64_t quantum_ns) {
  if (order < GS_FIFO || order > GS_RANKED) return -1;
  s->set_order(static_cast<Order>(order), quantum_ns);
  return 0;
}

void gs_sim_split(gs_sim* s, uint64_t bytes) {
  s->set_split(bytes == UINT64_MAX ? Segments::kByCurve : pages(s, bytes));
}

void gs_sim_aside(gs_sim* s, uint64_t accounts) { s->set_aside(accounts); }

uint64_t gs_sim_copied_out(gs_sim* s) { return s->governor().copied_out(); }

void gs_sim_rank(gs_sim* s, gs_account job, int64_t rank) {
  if (known(s, job)) s->set_rank(static_cast<uint32_t>(job), rank);
}

uint64_t gs_sim_curve(gs_sim* s, gs_account job, uint64_t* held, uint64_t* time_ns,
                      uint64_t capacity, uint64_t about[2]) {
  if (!known(s, job)) return 0;
  const Curve& c = s->governor().account(static_cast<uint32_t>(job)).curve;
  uint64_t last = 0;
  for (uint32_t i = 0; i < std::min<uint64_t>(c.length(), capacity); ++i) {
    held[i] = c.held(i) * s->page_bytes();
    time_ns[i] = last = std::max(last, c.time(i));
  }
  about[0] = c.residue() * s->page_bytes();
  about[1] = c.duration_ns();
  return c.length();
}

int gs_sim_job_get(gs_sim* s, gs_account job, uint64_t out[16]) {
  if (job <= 0 || job >= GS_MAX_ACCOUNTS) return -1;
  auto id = static_cast<uint32_t>(job);
  const Account& a = s->governor().account(id);
  Telemetry& t = s->telemetry();
  const uint64_t values[16] = {t.slot(id, kHeld),
                               t.slot(id, kIterations),
                               a.open ? a.recorder.ordinal() : 0u,
                               a.curve.length(),
                               t.slot(id, kSoloIterationNs),
                               t.slot(id, kDoorWaitNs),
                               t.slot(id, kMemoryWaitNs),
                               t.slot(id, kWaits),
                               t.slot(id, kOverruns),
                               t.slot(id, kOomCount),
                               t.slot(id, kCopiesOut),
                               t.slot(id, kShiftSumNs),
                               t.slot(id, kShiftCount),
                               a.curve_version,
                               s->most_passed(id),
                               t.slot(id, kLeases)};
  memcpy(out, values, sizeof values);
  return 0;
}

int gs_sim_progress_get(gs_sim* s, gs_account job, uint64_t out[GS_PROGRESS_FIGURES]) {
  if (job <= 0 || job >= GS_MAX_ACCOUNTS) return -1;
  const Account& a = s->governor().account(static_cast<uint32_t>(job));
  tell_progress(a, s->telemetry(), s->page_bytes(), s->time(), out);
  return 0;
}

void gs_sim_pool_get(gs_sim* s, uint64_t out[GS_POOL_FIGURES]) {
  PoolState p = s->governor().pool_state();
  uint64_t page = s->page_bytes();
  const uint64_t values[GS_POOL_FIGURES] = {p.held * page,     p.headroom * page, p.shared * page,
                                            p.budget * page,   p.free_ranges,     p.cuts_given_up,
                                            p.cut_needs * page};
  memcpy(out, values, sizeof values);
}

const char* gs_sim_check(gs_sim* s) {
  s->error = s->check();
  return s->error.c_str();
}

int gs_is_safe(const uint64_t* held, const uint64_t* claim, const uint64_t* residue, uint64_t n,
               uint64_t available) {
  if (n > kAccounts) return -1;
  Open open[kAccounts];
  for (uint64_t i = 0; i < n; ++i) open[i] = {held[i], claim[i], residue[i]};
  return is_safe(open, static_cast<uint32_t>(n), available);
}

int gs_fits_together(const uint32_t* held, const uint64_t* time_ns, const uint64_t* lengths,
                     const uint64_t* residues, const uint32_t* at, uint64_t n, uint64_t room) {
  std::vector<Forecast> forecasts(n + 1);
  std::vector<UnderWay> running;
  for (uint64_t i = 0; i <= n; ++i) {
    Curve curve;
    uint64_t duration = lengths[i] ? time_ns[lengths[i] - 1] : 0;
    curve.set({held, held + lengths[i]}, {time_ns, time_ns + lengths[i]}, residues[i], duration);
    forecasts[i].follow(curve, false);
    if (i) running.push_back(under_way(forecasts[i], curve, at[i - 1], 0));
    held += lengths[i], time_ns += lengths[i];
  }
  return fit_together(forecasts[0], running, room);
}

}  // extern "C"
