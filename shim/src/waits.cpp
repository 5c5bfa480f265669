// Waiting for pages, and who is let go when some come back. What happens when none will is in
// wedges.cpp, what a job is told that is refused in refusals.cpp.
#include <algorithm>
#include <chrono>
#include <utility>

#include "clock.h"
#include "gil.h"
#include "governor.h"

namespace gpushare {

namespace {
constexpr uint64_t kStoppedNs = 1000000000;
constexpr uint32_t kPlannedDoors = 4;  // the first ones: a plan takes time under the lock
}  // namespace

// Without a tick for so long nobody ran. Under a virtual clock ticks may be left out.
uint64_t Judge::stopped_until(uint64_t now) const {
  if (virtual_now || !ticked_ns_ || now < ticked_ns_ + kStoppedNs) return 0;
  return now - ticked_ns_;
}

// Not counted is what others were copied out and back meanwhile, and while all were stopped: nobody
// could give anything then.
uint64_t Judge::waited_for(const Waiter& w) const {
  uint64_t now = now_ns(), waited = now - w.since_ns;
  uint64_t idle = copying_ns_ + stopped_until(now);
  idle -= std::min(idle, w.copying_before_ns);
  return waited - std::min(waited, idle);
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
  w.copying_before_ns = copying_ns_ + stopped_until(w.since_ns);
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
  grant_memory();
  open_doors(for_permits);
}

void Governor::grant_memory() {
  for (auto it = memory_waiters_.begin(); it != memory_waiters_.end();) {
    Waiter& w = **it;
    Account& a = accounts_[w.id];
    // While another job forks, whoever waits stays where it is, but for who has a lock in hand: the
    // child has that locked either way, and its waits end soon. Who was copied out comes back with
    // the sampler.
    bool parked = a.saved || (parked_by_another(a) && !a.cancelled && !w.no_wait);
    Shut away = parked_for_ ? Shut{kForking, parked_for_} : Shut{kReturning, largest_other(a)};
    Judged judged =
        parked ? Judged{Verdict::kWait, away} : decide(a, w.pages, w.no_wait, waited_for(w));
    if (judged.verdict == Verdict::kWait) {
      w.reasons.note(judged.shut, now_ns);
      ++it;
      continue;
    }
    it = memory_waiters_.erase(it);
    w.refused = judged.verdict == Verdict::kImpossible;
    if (w.refused)
      release(w);
    else
      grant(w, judged.over);
  }
}

void Governor::grant(Waiter& w, bool over) {
  add_pages(accounts_[w.id], w.pages, over);
  w.granted_ns = granted_now();
  release(w);
}

void Governor::open_doors(bool for_permits) {
  uint32_t planned = 0;
  ++moment_;
  for (Waiter* w : doors_in_order()) {
    if (std::exchange(w->plans, false) && w->look_ns <= now_ns()) w->misfit = 0;  // look closely
    Account& a = accounts_[w->id];
    bool opens = a.at_door();  // else another thread of the job has passed it
    if (a.saved) {
      w->reasons.note({stands_aside(a) ? kSetAside : kReturning, largest_other(a)}, now_ns);
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

}  // namespace gpushare
