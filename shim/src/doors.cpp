// Iterations: marks, doors, permits.
#include <algorithm>
#include <chrono>
#include <utility>

#include "clock.h"
#include "governor.h"

namespace gpushare {

namespace {
// A batch may end where a job keeps so much more than its residue, so that what the safety check
// counts on to come back does.
constexpr uint64_t kSlackPages = 2, kSlackPart = 16;
}  // namespace

int32_t Governor::begin_job(uint32_t warmup, bool queued) {
  Lock lock(mutex_);
  if (jobs_ + 1 >= kAccounts) return -1;
  Account& a = accounts_[jobs_ + 1];
  if (!a.recorder.reserve()) return -1;
  ++jobs_;
  a.warmup_left = warmup;
  a.trace_after = warmup;
  telemetry_->header(kJobs, jobs_);
  set_state(a, kQueued);
  if (!queued) start_job(a);
  return static_cast<int32_t>(a.id);
}

void Governor::admit_job(uint32_t id) {
  Lock lock(mutex_);
  if (!accounts_[id].begun) start_job(accounts_[id]);
}

void Governor::start_job(Account& a) {
  a.begun = a.setting_up = true;
  telemetry_->slot(a.id, kBeginNs, now_ns());
  set_state(a, kSetUp);
  changed();
}

void Governor::end_job(uint32_t id, bool in_the_middle) {
  Lock lock(mutex_);
  Account& a = accounts_[id];
  end_locked(a, in_the_middle && !a.at_door());
}

void Governor::end_locked(Account& a, bool in_the_middle) {
  if (a.ended) return;
  if (a.open) close(a, in_the_middle);
  a.stop = Stop::kNowhere;
  a.ended = true;
  settle_headroom();
  telemetry_->slot(a.id, kEndNs, now_ns());
  set_state(a, kEnded);
  if (parked_for_ == a.id)
    end_park();
  else
    parked_changed_.notify_all();
  changed();
  pump();
}

void Governor::cancel(uint32_t id) {
  Lock lock(mutex_);
  accounts_[id].cancelled = true;
  accounts_[id].lease = 0;
  for (Waiter* w : memory_waiters_) w->interrupted |= w->id == id;
  for (Waiter* w : door_waiters_) w->interrupted |= w->id == id;
  parked_changed_.notify_all();
  pump();
}

void Governor::uncancel(uint32_t id) {
  Lock lock(mutex_);
  accounts_[id].cancelled = false;
}

void Governor::mark(uint32_t id) {
  Account& a = account(id);
  a.setting_up.store(false, std::memory_order_relaxed);
  a.marked_ns.store(now_ns(), std::memory_order_relaxed);
  a.stop.store(Stop::kHere, std::memory_order_release);
}

void Governor::note_first_graph(Account& a) {
  Stop was = Stop::kWhereMemoryFell;
  if (a.stop.compare_exchange_strong(was, Stop::kNowhere))
    a.evaluation.note_graph(a.recorder.ordinal());
}

bool Governor::stops_here(uint32_t id) {
  Account& a = account(id);
  if (a.at_door()) return true;
  if (a.captures.load()) return false;  // a door would be a part of what is captured
  bool keeps_little = a.held <= a.little;
  if (!a.evaluation.batch_ended(a.recorder.ordinal(), a.live, keeps_little)) return false;
  Stop was = Stop::kWhereMemoryFell;
  if (a.stop.compare_exchange_strong(was, Stop::kHere)) return true;
  a.evaluation.take_back();  // another thread's mark, or its graph, came first
  return was == Stop::kHere;
}

void Governor::pass_door(uint32_t id) {
  Lock lock(mutex_);
  Waiter w{.id = id, .pages = 0, .since_ns = 0, .reasons = {}, .wake = {}};
  if (!come_to_door(w)) return;
  sleep(w, lock);
  leave_door(w, lock);
}

bool Governor::come_to_door(Waiter& w) {
  uint32_t id = w.id;
  Account& a = accounts_[id];
  if (!a.at_door() || a.ended) return false;
  trim_leases();
  // All threads of a job that allocate wait until its door opens, not only the first to come: the
  // others would compute an iteration that nobody has let begin.
  w.first = std::ranges::none_of(door_waiters_, [&](const Waiter* o) { return o->id == id; });
  if (w.first && a.open) {
    comes_again_ = id;
    close(a);
    comes_again_ = 0;
  }
  ++moment_;
  Shut shut = w.first ? shut_by(a, nullptr) : Shut{};
  if (w.first && !shut) {
    open(a);
    pump();
    return false;
  }
  w.since_ns = now_ns();
  w.copying_before_ns = copying_ns_ + stopped_until(w.since_ns);
  w.reasons.begin(w.since_ns, shut);
  door_waiters_.push_back(&w);
  if (w.first) {
    if (decisions_.on()) w.predicted_ns = planned_wait(a);
    set_state(a, kAtDoor);
    telemetry_->event(id, kDoorWaitBegin, 0, w.since_ns);
    pump();
  }
  return true;
}

void Governor::leave_door(Waiter& w, Lock& lock) {
  Account& a = accounts_[w.id];
  if (w.first) {
    uint64_t now = now_ns();
    telemetry_->add(a.id, kDoorWaitNs, now - w.since_ns);
    telemetry_->event(a.id, kDoorWaitEnd, w.granted_ns ? now - w.granted_ns : 0, now);
    note_wake(w, now);
    note_wait(w, now);
  }
  if (w.refused) {
    a.stop = Stop::kNowhere;
    a.evaluation.take_back();
    pump();
    uint64_t held = a.held.load(std::memory_order_relaxed);
    uint64_t more = a.curve.known() ? std::max(held, a.curve.claim(0)) - held : 0;
    refuse(a, more, more * pool_.page_bytes(), lock, w.interrupted);
  }
}

void Governor::open(Account& a) {
  uint64_t now = now_ns();
  const Account* latest = nullptr;
  for (const Account& o : accounts())
    if (o.open && (!latest || o.opened_ns > latest->opened_ns)) latest = &o;
  if (latest && policy_ == Policy::kZico) {
    telemetry_->add(a.id, kShiftSumNs, now - latest->opened_ns);
    telemetry_->add(a.id, kShiftCount, 1);
    telemetry_->slot(a.id, kPredictedShiftNs, a.permit[latest->id].shift_ns);
  }
  if (parked_for_ == a.id && unpark_at_ns_) end_park();  // its workers are there
  for (Waiter* w : door_waiters_)
    if (w->id != a.id && !waits_for_turn_of_another(accounts_[w->id], a)) ++w->starts_seen[a.id];
  if (!had_the_last_turn(a)) a.turn_began_ns = now;
  if (a.opening == 0) a.granted = least_granted(a);  // whatever it did until now was no iteration
  a.opening = ++openings_;
  a.granted_at_ns = now;
  a.open = true;
  ++moment_;
  a.in_iteration = true;
  a.held_back_since_ns = 0;
  a.alone = policy_ != Policy::kUnmanaged && !a.curve.known();
  a.overrunning = false;
  a.opened_ns = now;
  a.gil_wait_before_ns = telemetry_->slot(a.id, kGilWaitNs);
  a.paused_ns = a.overrun_here = 0;
  a.started_process = false;
  a.held_max_here = a.held.load(std::memory_order_relaxed);
  a.live_peak.store(a.live.load());
  a.recorder.restart(now);
  a.iteration_kinds.begin();
  a.evaluation.begin(policy_ != Policy::kUnmanaged && a.trusted());
  a.little = a.curve.residue() + kSlackPages +
             (a.curve.claim(0) - std::min(a.curve.residue(), a.curve.claim(0))) / kSlackPart;
  a.stop = Stop::kWhereMemoryFell;  // last: it lets other threads look at what is above
  promise(a, a.held.load(std::memory_order_relaxed));
  // The first iteration is passed over: optimizers make their state in it.
  if (telemetry_->slot(a.id, kIterations) >= a.trace_after && !a.kinds.learned() &&
      !a.after_batch) {
    a.trace.start(static_cast<uint64_t>(std::max<int64_t>(a.live, 0)));
    a.tracing = true;
  }
  set_state(a, a.alone ? kAlone : kIterating);
  uint64_t iteration = telemetry_->slot(a.id, kIterations);
  telemetry_->event(a.id, kOpen, iteration, now);
  if (log_.on()) log_.add(Logged::kIterationOpened, a.id, 0, iteration, nullptr, 0);
}

// What its script did `in_the_middle` of it was no iteration: it has evaluated, say, and ends.
void Governor::close(Account& a, bool in_the_middle) {
  uint64_t now = now_ns(), page = pool_.page_bytes();
  if (a.memory_waits) {  // another thread's, which goes on
    pause(a, now);
    a.waiting_since_ns = now;
  }
  IterationKinds::Times times = a.times(now);
  bool batch = a.evaluation.close(), counts = batch || !in_the_middle;
  integrate(a, now);
  if (a.tracing.exchange(false) && !batch && counts) learn_kinds(a);
  if (log_.on())
    log_.add(Logged::kIterationClosed, a.id, 0, telemetry_->slot(a.id, kIterations), nullptr, 0);
  telemetry_->raise(a.id, kLiveMax, static_cast<uint64_t>(std::max<int64_t>(a.live_peak, 0)));
  if (a.alone || !others_open(a)) telemetry_->raise(a.id, kSoloPeak, a.held_max_here * page);
  if (counts) count_iteration(a, times, batch);
  telemetry_->event(a.id, kClose, times.duration_ns, now);
  a.open = a.alone = a.overrunning = false;
  a.lease = 0;
  a.in_iteration = false;
  alone_since_ns_ = now;
  parked_changed_.notify_all();
  pump();
}

void Governor::count_iteration(Account& a, IterationKinds::Times times, bool batch) {
  bool profiled = !a.curve.known() && a.warmup_left == 0;
  bool warms_up = a.curve_given && a.warmup_left > 0 && !batch;
  uint64_t duration = times.duration_ns;
  learn(a, times, batch);
  a.after_batch = batch;
  telemetry_->add(a.id, batch ? kBatches : kIterations, 1);
  if (!batch) telemetry_->slot(a.id, kLastIterationNs, duration);
  if (profiled) {
    // Others that set up have the interpreter's lock now and then.
    uint64_t gil_wait = telemetry_->slot(a.id, kGilWaitNs) - a.gil_wait_before_ns;
    telemetry_->slot(a.id, kSoloIterationNs, duration - std::min(duration, gil_wait));
    telemetry_->slot(a.id, kSoloLivePeak, static_cast<uint64_t>(std::max<int64_t>(a.live_peak, 0)));
  } else if (!a.alone && !batch && !warms_up) {
    telemetry_->add(a.id, kSharedIterationSumNs, duration);
    telemetry_->add(a.id, kSharedIterations, 1);
    telemetry_->add(a.id, kSharedWork, a.iteration_kinds.last_work());
  }
}

void Governor::set_curve(uint32_t id, std::vector<uint32_t> held, std::vector<uint64_t> time_ns,
                         uint64_t residue_pages, uint64_t duration_ns) {
  Lock lock(mutex_);
  Account& a = accounts_[id];
  uint64_t duration = std::max(duration_ns, time_ns.empty() ? 0 : time_ns.back());
  uint64_t peak = held.empty() ? 0 : *std::max_element(held.begin(), held.end());
  a.curve.set(std::move(held), std::move(time_ns), residue_pages, duration);
  a.forecast.follow(a.curve, false);
  a.segments.cut(a.curve, split_);
  a.curve_given = true;
  ++a.curve_version;
  telemetry_->slot(id, kProfiled, 1);
  telemetry_->slot(id, kSoloPeak, peak * pool_.page_bytes());
  telemetry_->slot(id, kSoloIterationNs, duration);
  telemetry_->slot(id, kCurveLength, a.curve.length());
  changed();
}

void Governor::add_kind(uint32_t id, Curve curve, uint64_t seen,
                        std::span<const uint64_t> followed_by) {
  Lock lock(mutex_);
  Account& a = accounts_[id];
  a.iteration_kinds.add(std::move(curve), seen, followed_by);
  telemetry_->slot(id, kIterationKinds, a.iteration_kinds.count());
}

void Governor::inspect(uint32_t id, const std::function<void(const Account&)>& read) {
  Lock lock(mutex_);
  read(accounts_[id]);
}

void Governor::set_permits(const std::vector<PairPermit>& permits) {
  Lock lock(mutex_);
  for (const PairPermit& p : permits) accounts_[p.id].permit[p.after] = p.permit;
  pump(true);
}

void Governor::set_order(Order order, uint64_t quantum_ns) {
  Lock lock(mutex_);
  order_ = order;
  quantum_ns_ = quantum_ns;
  pump();
}

void Governor::set_rank(uint32_t id, int64_t rank) {
  Lock lock(mutex_);
  accounts_[id].rank = rank;
  pump();
}

uint64_t Governor::wait_change(uint64_t seen, uint64_t timeout_ns) {
  Lock lock(mutex_);
  changed_.wait_for(lock, std::chrono::nanoseconds(timeout_ns), [&] { return version_ != seen; });
  return version_;
}

bool Governor::iterating_past_profile(uint32_t id, bool unhindered) {
  Lock lock(mutex_);
  const Account& a = accounts_[id];
  return a.open && !a.alone && !(unhindered && a.waiting_threads > 0);
}

}  // namespace gpushare
