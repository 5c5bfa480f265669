// A fork is a door for all: what another thread has locked in just that moment the child has locked
// for ever. So the other jobs stop where they allocate next, in the middle of an iteration too, or
// where they wait, while one forks: who asks for a block is inside no library that has locks of its
// own, as at its door. A thread that rests (rests.cpp) is inside nothing; when it wakes meanwhile
// it rests on.
#include <algorithm>
#include <chrono>
#include <utility>

#include "clock.h"
#include "gil.h"
#include "governor.h"

namespace gpushare {

namespace {
constexpr auto kSetUpStops = std::chrono::milliseconds(20);
constexpr auto kOthersEnd =
    std::chrono::milliseconds(100);    // threads beside one that waits to fork
constexpr uint64_t kToldNs = 1000000;  // waits that are shorter are not
// Asleep for so long in a library, which no rest holds: it won't wake in that moment.
constexpr uint64_t kWillSleepOnNs = 1000000000;
}  // namespace

// Whether it is inside nothing that a child could find locked, and stays so.
bool Judge::rests_for_fork(const Account& a) const {
  if (a.threads == 0) return false;  // none of its threads has entered yet
  return a.rests_in_libraries ? is_asleep(a, kWillSleepOnNs) : stands_still(a);
}

// `strictly`: that a thread of the job waits to fork is not enough while others of it compute.
bool Judge::all_parked(uint32_t except, bool set_up_too, bool strictly) const {
  for (const Account& a : accounts()) {
    // What has no iteration any more, or not yet, stops at its next allocation.
    bool iterates = a.open && !a.saved && !a.at_door();
    bool computes = iterates || (set_up_too && a.id && a.live_job());
    if (!computes || a.id == except || rests_for_fork(a)) continue;
    uint32_t passed_over = strictly && !stands_still(a) ? a.fork_waits : 0;
    if (a.waiting_threads == passed_over) return false;
  }
  return true;
}

void Governor::stop_for_fork(uint32_t id) {
  GilReleased released;
  Lock lock(mutex_);
  Account& a = accounts_[id];
  if (!parked_by_another(a) || a.ended || a.cancelled) return;
  bool entered = has_entered(id);
  // What others compute for an iteration, one that has entered waits for.
  if (a.open && !(entered && now_ns() >= stops_within_from_ns_)) return;
  a.threads += !entered;
  ++a.waiting_threads, ++a.stopped, ++a.woken;  // not asleep: what leaves meanwhile comes back
  ForkWait w = begin_pause(a);
  parked_changed_.notify_all();
  uint64_t park = parks_ended_;
  parked_changed_.wait(lock, [&] { return parks_ended_ != park || a.cancelled; });
  if (parks_ended_ == park) --a.waiting_threads, --a.stopped;
  if (a.away) await_return(a, lock);
  end_pause(a, w);
  --a.woken;
  a.threads -= !entered;
}

void Governor::await_return(Account& a, Lock& lock) {
  ++a.waiting_threads;
  parked_changed_.wait(lock, [&] { return !a.away; });
  --a.waiting_threads;
}

// What the job waits is no part of its iteration's time, if nothing of it computes meanwhile.
ForkWait Governor::begin_pause(Account& a) {
  ForkWait w{now_ns(), stands_still(a),
             parked_by_another(a) ? parked_for_.load() : largest_other(a)};
  if (w.pauses && a.memory_waits++ == 0) a.waiting_since_ns = w.since_ns;
  return w;
}

void Governor::end_pause(Account& a, ForkWait w) {
  uint64_t now = now_ns();
  if (!w.pauses || --a.memory_waits > 0) return;
  pause(a, now);
  if (now - w.since_ns < kToldNs) return;
  Waiter told = begin_other_wait(a, 0, {});
  told.since_ns = w.since_ns;
  told.reasons.begin(w.since_ns, {kForking, w.by});
  end_other_wait(told);
}

ForkWait Governor::begin_fork_wait(Account& a) {
  a.started_process = true;
  ++a.waiting_threads, ++a.woken, ++a.fork_waits;
  return begin_pause(a);
}

void Governor::await_turn_to_fork(uint32_t id, bool waits) {
  thread_local ForkWait begun;  // a thread says both
  GilReleased released;
  Lock lock(mutex_);
  Account& a = accounts_[id];
  if (waits) {
    begun = begin_fork_wait(a);
    return parked_changed_.notify_all();
  }
  parked_changed_.wait(lock, [&] { return !a.away; });
  --a.waiting_threads, --a.woken, --a.fork_waits;
  end_pause(a, begun);
}

bool Governor::park_others(uint32_t id, uint64_t timeout_ns) {
  GilReleased released;
  uint64_t start = now_ns();
  auto until = std::chrono::steady_clock::now() + std::chrono::nanoseconds(timeout_ns);
  Lock lock(mutex_);
  // One fork at a time; a second one waits as a parked job does.
  Account& a = accounts_[id];
  ForkWait w = begin_fork_wait(a);
  parked_changed_.notify_all();
  auto may_fork = [&] {
    return (parked_for_ == 0 || parked_for_ == id || unpark_at_ns_) && !a.away;
  };
  bool mine = parked_changed_.wait_until(lock, until, may_fork);
  parked_changed_.wait(lock, [&] { return !a.away; });  // nobody forks without its memory
  --a.waiting_threads, --a.woken, --a.fork_waits;
  bool parked = mine && park_all_but(id, until, lock);
  end_pause(a, w);
  telemetry_->header(kParks, telemetry_->header(kParks) + 1);
  telemetry_->header(kParkNs, telemetry_->header(kParkNs) + now_ns() - start);
  return parked;
}

bool Governor::park_all_but(uint32_t id, std::chrono::steady_clock::time_point until, Lock& lock) {
  // It has forked a moment ago: the others have stopped, or will at their next allocation.
  bool again = parked_for_ == id && unpark_at_ns_;
  if (!parked_for_) parked_since_ns_ = now_ns();
  if (!again) parked_in_vain_ = false;
  parked_for_ = id;
  unpark_at_ns_ = 0;
  ++forks_;
  parked_changed_.notify_all();  // it may be another one that forks now
  if (!again) {
    parked_changed_.wait_for(lock, kSetUpStops, [&] { return all_parked(id, true, true); });
    parked_changed_.wait_for(lock, kOthersEnd, [&] { return all_parked(id, false, true); });
  }
  auto all_stand = [&] { return all_parked(id, false, false); };
  bool parked = parked_in_vain_ ? all_stand() : parked_changed_.wait_until(lock, until, all_stand);
  parked_in_vain_ = !parked;
  return parked;
}

// Who starts workers forks again in a moment, and would wait for the others' iterations each time.
// Who forks all the time lets them go on now and then.
void Governor::unpark_others(uint32_t id) {
  Lock lock(mutex_);
  // What a signal raises may have come before the fork was counted.
  if (parked_for_ != id || forks_ == 0 || --forks_ > 0) return;
  uint64_t now = now_ns();
  if (now - parked_since_ns_ >= static_cast<uint64_t>(longest_forks.count())) {
    end_park();
    return pump();
  }
  unpark_at_ns_ = now + static_cast<uint64_t>(between_forks.count());
  if (unpark_at_ns_ < looks_at_ns_) looks_changed_.notify_all();
}

void Governor::unpark_if_due(uint64_t now) {
  if (unpark_at_ns_ && now >= unpark_at_ns_) end_park();
}

// Who was stopped counts as running from here on, though its thread has yet to wake: it may fork
// again before that. And it goes on for as long before it is stopped within an iteration again:
// between the forks of one that forks all the time it would only come to its next allocation.
void Governor::end_park() {
  uint64_t now = now_ns();
  stops_within_from_ns_ = now + (now - std::min(now, parked_since_ns_));
  for (uint32_t id = 1; id <= jobs_; ++id)
    accounts_[id].waiting_threads -= std::exchange(accounts_[id].stopped, 0);
  ++parks_ended_;
  parked_for_ = forks_ = 0;
  unpark_at_ns_ = 0;
  parked_changed_.notify_all();
}

}  // namespace gpushare
