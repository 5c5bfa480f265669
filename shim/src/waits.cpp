// Waiting for pages, who is let go when some come back, and what happens when none will.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <utility>

#include "clock.h"
#include "gil.h"
#include "governor.h"

namespace gpushare {

namespace {
constexpr uint64_t kWedgeNs = 1000000000;    // every open iteration waits and nothing was freed
constexpr uint64_t kSureWedgeNs = 30000000;  // and there is no thread that could free anything
constexpr uint64_t kHopeNs = 10000000000;    // and there is one: no job is refused memory before
constexpr uint64_t kNotCountedOnNs = 5000000000;  // asleep for so long: it may never wake
constexpr uint32_t kPlannedDoors = 4;  // the first ones: a plan takes time under the lock
}  // namespace

// Not counted is what others were copied out and back meanwhile: nobody could give anything then.
uint64_t Judge::waited_for(const Waiter& w) const {
  uint64_t waited = now_ns() - w.since_ns, copied = copying_ns_ - w.copying_before_ns;
  return waited - std::min(waited, copied);
}

void Governor::wait_for_memory(Account& a, uint64_t n, bool no_wait, uint64_t bytes, Shut shut,
                               Lock& lock) {
  Waiter w{
      .id = a.id, .pages = n, .since_ns = now_ns(), .no_wait = no_wait, .reasons = {}, .wake = {}};
  begin_memory_wait(w, shut);
  sleep(w, lock);
  end_memory_wait(w);
  if (w.refused) refuse(a, n, bytes, lock, w.interrupted);
}

void Governor::begin_memory_wait(Waiter& w, Shut shut) {
  Account& a = accounts_[w.id];
  if (a.memory_waits++ == 0) a.waiting_since_ns = w.since_ns;
  w.copying_before_ns = copying_ns_;
  w.reasons.begin(w.since_ns, shut);
  if (decisions_.on() && shut.why == kClaims) w.predicted_ns = predicted_memory_wait(a, w.pages);
  w.before = static_cast<State>(telemetry_->slot(a.id, kState));
  memory_waiters_.push_back(&w);
  set_state(a, kWaitingForMemory);
  telemetry_->add(a.id, kWaits, 1);
  telemetry_->event(a.id, kMemoryWaitBegin, w.pages * pool_.page_bytes(), w.since_ns);
}

void Governor::end_memory_wait(Waiter& w) {
  Account& a = accounts_[w.id];
  set_state(a, w.before);
  uint64_t now = now_ns(), waited = now - w.since_ns;
  if (--a.memory_waits == 0) pause(a, now);
  note_wait(w, now);
  telemetry_->add(a.id, kMemoryWaitNs, waited);
  telemetry_->event(a.id, kMemoryWaitEnd, w.granted_ns ? now - w.granted_ns : 0, now);
  note_wake(w, now);
}

// Several threads of a job may wait at once, and longer than the iteration that is open now.
void Governor::pause(Account& a, uint64_t now_ns) {
  uint64_t from = std::max(a.waiting_since_ns, a.opened_ns);
  uint64_t paused = now_ns - std::min(now_ns, from);
  a.paused_ns += paused;
  a.recorder.skip(paused);
}

void Governor::note_wake(const Waiter& w, uint64_t now_ns) {
  if (!w.granted_ns) return;
  uint64_t woken = w.woken_ns ? w.woken_ns : now_ns;
  telemetry_->wake(w.id, woken - w.granted_ns, now_ns - woken);
}

// What the wait was for, now that it is over.
void Governor::note_wait(Waiter& w, uint64_t now_ns) {
  w.reasons.end(now_ns);
  telemetry_->raise(w.id, kLongestWaitNs, now_ns - w.since_ns);
  for (uint32_t why = 1; why < kWhys; ++why)
    if (uint64_t ns = w.reasons.ns(static_cast<Why>(why)))
      telemetry_->add(w.id, static_cast<Slot>(kWaitedNs + why - 1), ns);
  if (w.predicted_ns != kNotPredicted) {
    uint64_t waited = now_ns - w.since_ns;
    telemetry_->add(w.id, kForecastWaits, 1);
    telemetry_->add(w.id, kForecastErrorNs,
                    std::max(waited, w.predicted_ns) - std::min(waited, w.predicted_ns));
  }
  if (!decisions_.on()) return;
  Shut shut = w.reasons.longest();
  decisions_.add([&]() -> Decision {
    uint64_t iteration = telemetry_->slot(w.id, kIterations);
    return {w.since_ns,
            now_ns - w.since_ns,
            w.predicted_ns,
            w.pages * pool_.page_bytes(),
            static_cast<uint32_t>(iteration),
            static_cast<uint8_t>(w.id),
            static_cast<uint8_t>(shut.by),
            shut.why,
            w.refused};
  });
}

// Waits until someone has set w.done. The waiter is in one of the lists, and its granter removes
// it.
void Governor::sleep(Waiter& w, Lock& lock) {
  Account& a = accounts_[w.id];
  uint32_t more = !has_entered(w.id);
  a.threads += more;
  ++a.waiting_threads;
  ++sleepers_;
  parked_changed_.notify_all();
  // The GIL is given up with the lock dropped: taking it back may wait, and the lock must not.
  lock.unlock();
  {
    GilReleased released;
    lock.lock();
    auto done = [&] { return w.done; };
    if (w.no_wait)
      sleep_for_a_while(w, lock);
    else
      w.wake.wait(lock, done);
    w.woken_ns = now_ns();
    lock.unlock();
  }
  --sleepers_;
  lock.lock();
  a.threads -= more;
}

// With a lock in hand that others may want: it is refused then.
void Governor::sleep_for_a_while(Waiter& w, Lock& lock) {
  auto patience = static_cast<uint64_t>(longest_with_lock.count());
  while (!w.done) {
    uint64_t waited = waited_for(w);
    if (waited >= patience) break;
    w.wake.wait_for(lock, std::chrono::nanoseconds(patience - waited), [&] { return w.done; });
  }
  if (w.done) return;
  memory_waiters_.remove(&w);
  w.refused = true;
  release(w);
}

// Lets a waiter go on. From here on it counts as running, though its thread has yet to wake.
void Governor::release(Waiter& w) {
  --accounts_[w.id].waiting_threads;
  w.done = true;
  w.wake.notify_one();
}

// Grants what can be granted now: memory first, in the order of asking, then doors. A door that
// only new permits open had to wait for Python.
void Governor::pump(bool for_permits) {
  settle_budget();
  trim_leases();
  for (auto it = memory_waiters_.begin(); it != memory_waiters_.end();) {
    Waiter& w = **it;
    Account& a = accounts_[w.id];
    // While another job forks, whoever waits stays where it is, but for who has a lock in hand: the
    // child has that locked either way, and its waits end soon. Who was copied out comes back with
    // the sampler.
    bool parked = a.saved || (parked_by_another(a) && !a.cancelled && !w.no_wait);
    Shut away = parked_for_ ? Shut{kForking, parked_for_} : Shut{kResidues, largest_other(a)};
    Judged judged =
        parked ? Judged{Verdict::kWait, away} : decide(a, w.pages, w.no_wait, waited_for(w));
    if (judged.verdict == Verdict::kWait) {
      w.reasons.note(judged.shut, now_ns);
      ++it;
      continue;
    }
    if (judged.verdict == Verdict::kGo) {
      add_pages(a, w.pages, judged.over);
      w.granted_ns = granted_now();
    }
    w.refused = judged.verdict == Verdict::kImpossible;
    it = memory_waiters_.erase(it);
    release(w);
  }
  uint32_t planned = 0;
  ++moment_;
  for (Waiter* w : doors_in_order()) {
    if (std::exchange(w->plans, false) && w->look_ns <= now_ns()) w->misfit = 0;  // look closely
    Account& a = accounts_[w->id];
    bool opens = a.at_door();  // else another thread of the job has passed it
    if (a.saved) {
      w->reasons.note({stands_aside(a) ? kSetAside : kResidues, largest_other(a)}, now_ns);
      continue;
    }
    if (Shut shut = opens ? shut_by(a, w) : Shut{}) {
      w->reasons.note(shut, now_ns);
      if (shut.why != kShift || ++planned <= kPlannedDoors) plan_look(*w, shut);
      continue;
    }
    door_waiters_.remove(w);
    if (opens) open(a);
    w->granted_ns = granted_now();
    release(*w);
    if (opens && for_permits) telemetry_->add(a.id, kPythonGrants, 1);
  }
}

// Why nothing of others was copied out that might have been, if that was tried of late.
const char* Judge::why_nothing_left(const Account& a) const {
  auto failed = [&, now = now_ns()](const Account& o) {
    bool of_late = o.copy_failed_ns && now - o.copy_failed_ns < 2 * kHopeNs;
    return o.id != a.id && o.live_job() && of_late;
  };
  if (std::ranges::none_of(accounts(), failed)) return "";
  return device_->asynchronous()
             ? " What jobs keep could not be copied out: has the machine too little memory left?"
             : " What jobs keep could not be copied out: is there room in $TMPDIR?";
}

std::string Judge::figures(const Account& a, uint64_t n, uint64_t bytes) const {
  double mib = 1048576.0 / static_cast<double>(pool_.page_bytes());
  uint64_t held = a.held.load(std::memory_order_relaxed);
  uint64_t shared = accounts_[0].held.load(std::memory_order_relaxed);
  if (held + n > a.limit) {
    char text[300];
    snprintf(text, sizeof text,
             "gpushare: out of memory: asked for %.1f MiB (%.1f MiB of pages); this job holds %.1f "
             "MiB and has set itself a limit of %.1f MiB (set_per_process_memory_fraction).",
             static_cast<double>(bytes) / 1048576.0, static_cast<double>(n) / mib,
             static_cast<double>(held) / mib, static_cast<double>(a.limit) / mib);
    return text;
  }
  char text[500];
  snprintf(text, sizeof text,
           "gpushare: out of memory: asked for %.1f MiB (%.1f MiB of pages); this job holds %.1f "
           "MiB, the other jobs %.1f MiB, shared %.1f MiB; the budget is %.1f MiB. Raise --budget, "
           "or make the batch smaller.%s",
           static_cast<double>(bytes) / 1048576.0, static_cast<double>(n) / mib,
           static_cast<double>(held) / mib, static_cast<double>(others_hold(a)) / mib,
           static_cast<double>(shared) / mib, static_cast<double>(budget_) / mib,
           held + n + shared <= budget_ ? why_nothing_left(a) : "");
  return text;
}

uint64_t Judge::others_hold(const Account& a) const {
  uint64_t rest = held_ - a.held.load(std::memory_order_relaxed);
  return a.id ? rest - accounts_[0].held.load(std::memory_order_relaxed) : rest;
}

// `n` pages more than it holds are what the job can't go on without.
void Governor::refuse(Account& a, uint64_t n, uint64_t bytes, Lock& lock, bool interrupted) {
  uint64_t held = a.held.load(std::memory_order_relaxed), page = pool_.page_bytes();
  uint64_t shared = a.id ? accounts_[0].held.load(std::memory_order_relaxed) : 0;
  interrupted |= a.cancelled;
  bool own_limit = held + n > a.limit;  // tells nothing of what the job needs
  bool alone = !own_limit && held + n + shared > budget_;
  // A job that has not run beside the others yet and can't: its residue or theirs is in the way.
  bool beside =
      !own_limit && !alone && !others_open(a) && telemetry_->slot(a.id, kSharedIterations) == 0;
  telemetry_->add(a.id, kOomCount, 1);
  telemetry_->slot(a.id, kNeedsAtLeast, (held + n + shared) * page);
  telemetry_->slot(a.id, kOthersKeep, others_hold(a) * page);
  uint64_t refusal = alone ? uint64_t{kAloneTooLarge} : uint64_t{kTooLargeBesideOthers};
  telemetry_->slot(a.id, kRefusal, !interrupted && (alone || beside) ? refusal : 0);
  std::string text =
      interrupted ? "gpushare: interrupted while waiting for memory" : figures(a, n, bytes);
  lock.unlock();
  throw OutOfMemory(text);
}

// Whether nothing that is under way can make room: every open iteration waits for memory, or every
// job waits for something, but for one that sleeps and holds nothing, or (kBesideOthers) that is in
// no iteration, or asleep in it.
bool Judge::stuck(Stuck where) const {
  if (parked_for_) return false;
  bool any = false;
  for (const Account& a : accounts()) {
    bool counts = where == Stuck::kInIterations ? a.open : a.id && a.live_job();
    if (!counts || a.saved) continue;
    if (a.waiting_threads == 0) {
      bool sleeps = where != Stuck::kInIterations && is_asleep(a, kNotCountedOnNs);
      bool passed_over = where == Stuck::kBesideOthers ? !a.open || sleeps : sleeps && a.held == 0;
      if (!passed_over) return false;
    }
    any |= a.waiting_threads > 0;
  }
  return any && !(memory_waiters_.empty() && door_waiters_.empty());
}

// Whether each thread of each job waits here. One that rests may wake and free something, though
// what it waits for is mostly one that waits here.
bool Judge::all_threads_wait(bool or_rest) const {
  return std::ranges::all_of(accounts(), [&](const Account& a) {
    if (!a.id || !a.live_job()) return true;
    return or_rest ? stands_still(a) : a.threads == a.waiting_threads;
  });
}

// The safety check can't foresee bytes that exceed their claim, nor that jobs come to keep more at
// their doors than lets any of them run. When nothing has moved for a while,
// the budget itself (headroom included) is the last reserve; then a job's pages are copied out
// (copying_out.cpp); where that can't be, the job that overran, else the one that asked last or
// began last, gets an out-of-memory error. Beside jobs that may give something back in their own
// time, pages are copied out after a while where that lets another job run, and nobody gets an
// error.
void Governor::resolve_wedge() {
  uint64_t now = now_ns();  // under the lock: no free is later
  bool in_iterations = stuck(Stuck::kInIterations);
  bool beside_others = !in_iterations && !stuck(Stuck::kEverywhere);
  if (beside_others && !stuck(Stuck::kBesideOthers)) {
    wedged_since_ns_ = 0;
    return;
  }
  if (wedged_since_ns_ == 0) wedged_since_ns_ = now;
  uint64_t patience = beside_others ? kHopeNs : all_threads_wait(true) ? kSureWedgeNs : kWedgeNs;
  uint64_t quiet = now - std::max(wedged_since_ns_, last_free_ns_);
  if (quiet < patience) return;
  Waiter* victim = nullptr;
  for (Waiter* w : memory_waiters_) {
    Account& a = accounts_[w->id];
    if (beside_others || a.saved || (in_iterations && !a.open)) continue;
    if (held_ + w->pages <= budget_) {
      bool over = a.held.load(std::memory_order_relaxed) + w->pages > claim_of(a);
      add_pages(a, w->pages, over && a.open && a.trusted());
      w->granted_ns = now;
      memory_waiters_.remove(w);
      release(*w);
      wedged_since_ns_ = 0;
      return;
    }
    if (!victim || a.overrunning || !accounts_[victim->id].overrunning) victim = w;
  }
  Waiter* leaver = find_leaver(beside_others);
  bool left = leaver && copy_out(accounts_[leaver->id]);
  if (beside_others) {
    if (left) wedged_since_ns_ = 0;
    return;
  }
  if (!left && !all_threads_wait(false)) {
    uint64_t last = std::max(wedged_since_ns_, last_free_ns_);
    if (const Waiter* w = victim)
      last = std::max(last, hoped_ns(accounts_[w->id], w->pages, now - waited_for(*w)));
    if (now < last + kHopeNs) return;
  }
  wedged_since_ns_ = 0;
  if (left || (!victim && in_iterations)) return;
  for (Waiter* w : door_waiters_)
    if (!in_iterations && !accounts_[w->id].saved && (!victim || w->id > victim->id)) victim = w;
  if (!victim) return;
  if (std::exchange(aside_, 0)) return pump();  // nobody is refused for what others would do
  memory_waiters_.remove(victim);
  door_waiters_.remove(victim);
  victim->refused = true;
  release(*victim);
}

}  // namespace gpushare
