// Rests: a thread that sleeps in one of the interpreter's own waits (for a lock, a moment, a
// descriptor) touches nothing of its job's memory, so that may leave meanwhile. Who wakes while it
// is away rests on until it is back, and likewise while another job forks (forks.cpp). Collectors
// of garbage call this a safe region.
//
// A rest begins and ends without a lock. Who copies out says so (`away`) before it counts who
// rests, and who ends a rest is no longer counted before it looks whether the memory is away: at
// least one of the two sees the other. So it is with who forks (`parked_for_`).
//
// Jobs may need each other's threads: for a lock of a module that they share, or for an answer of a
// thread that such a module has started in the job that came first. So where nothing moves while
// one is away, it changes places with one that stands still. And who waits here, for memory or at
// its door, may have a lock in hand that another one wants in its iteration: the one that stands
// still leaves where that lets the other go on. A job that leaves like these may have nobody who
// waits here; when one of its threads wakes, it comes back as who left in its iteration does.
#include <algorithm>
#include <utility>

#include "clock.h"
#include "governor.h"

namespace gpushare {

namespace {
constexpr uint64_t kNothingMovesNs = 1000000000;         // no block was made or freed
constexpr uint64_t kNoIterationNs = 30 * 1000000000ull;  // none ended, whatever threads do beside
// A job that sleeps so long leaves for one that waits. What a set-up takes it may keep to its end,
// so who leaves for it may have to wait as long. Who will not wait for long has a lock in hand.
constexpr uint64_t kAsleepNs = 5 * 1000000000ull, kAsleepBesideSetUpNs = 6 * kAsleepNs;
constexpr uint64_t kAsleepForALockNs = 1000000000;
}  // namespace

void Governor::count_rest(Account& a, Rest rest, int by) {
  if (rest == Rest::kForItsTurnToFork) return;
  a.rests_in_libraries.fetch_add(rest == Rest::kInLibrary ? by : 0);
  a.resting.fetch_add(by);
}

void Governor::begin_rest(uint32_t id, Rest rest) {
  count_rest(accounts_[id], rest, 1);
  if (!parked_by_another(accounts_[id])) return;
  Lock lock(mutex_);  // it waits for this, and may just have looked
  parked_changed_.notify_all();
}

bool Governor::end_rest(uint32_t id, Rest rest) {
  Account& a = accounts_[id];
  bool held = rest == Rest::kInPython;
  if (!held || !parked_by_another(a)) {
    count_rest(a, rest, -1);
    if (!a.away && !(held && parked_by_another(a))) return true;
    count_rest(a, rest, 1);
  }
  if (a.away || !held) return false;
  Lock lock(mutex_);
  parked_changed_.notify_all();
  if (a.away || is_held_for_fork(a)) return false;
  count_rest(a, rest, -1);
  return true;
}

// Who forks waits for the door of a job of which another thread computes: that one may need this
// one to get there.
bool Judge::is_held_for_fork(const Account& a) const {
  return parked_by_another(a) && !a.cancelled && stands_still(a);
}

bool Governor::rest_on(uint32_t id, Rest rest) {
  Account& a = accounts_[id];
  Lock lock(mutex_);
  ++a.woken;
  bool over = rest != Rest::kInPython || hold_for_fork(a, lock);
  if (a.away || a.abandoned) {
    Waiter w = begin_wait_for_return(a);
    parked_changed_.wait(lock, [&] { return !a.away && !a.abandoned; });
    end_wait_for_return(w);
  }
  --a.woken;
  count_rest(a, rest, -1);
  return over;
}

// Not for ever: the thread may have another lock in hand that a hook of the one that forks wants.
// False: it still forks.
bool Governor::hold_for_fork(Account& a, Lock& lock) {
  if (!is_held_for_fork(a)) return true;
  if (a.memory_waits++ == 0) a.waiting_since_ns = now_ns();
  Waiter w = begin_other_wait(a, 0, {kForking, parked_for_});
  bool over = parked_changed_.wait_for(lock, longest_hold, [&] { return !is_held_for_fork(a); });
  end_wait_for_return(w);
  return over;
}

// A wait that no door and no allocation makes is told like those: with `pages`, as one for memory.
Waiter Governor::begin_other_wait(const Account& a, uint64_t pages, Shut shut) const {
  uint64_t now = now_ns();
  WaitReasons reasons;
  reasons.begin(now, shut);
  return {.id = a.id, .pages = pages, .since_ns = now, .reasons = reasons, .wake = {}};
}

void Governor::end_other_wait(Waiter& w) {
  uint64_t now = now_ns();
  telemetry_->add(w.id, w.pages ? kMemoryWaitNs : kDoorWaitNs, now - w.since_ns);
  if (w.pages) telemetry_->add(w.id, kWaits, 1);
  note_wait(w, now);
}

// Of several threads that wait for the same memory, the last one tells it.
Waiter Governor::begin_wait_for_return(Account& a) {
  if (a.memory_waits++ == 0) a.waiting_since_ns = now_ns();  // no part of the iteration's time
  return begin_other_wait(a, std::max<uint64_t>(a.saved, 1), {kReturning, largest_other(a)});
}

void Governor::end_wait_for_return(Waiter& w) {
  Account& a = accounts_[w.id];
  if (--a.memory_waits > 0) return;
  pause(a, now_ns());
  end_other_wait(w);
}

// Whether each of the job's threads waits here or rests, and nothing computes for them.
bool Judge::stands_still(const Account& a) const {
  return a.threads == a.waiting_threads + a.resting && a.tasks == 0;
}

// Whether it has slept for so long at least.
bool Judge::is_asleep(const Account& a, uint64_t for_ns) const {
  return stands_still(a) && a.moved_ns && now_ns() >= a.moved_ns + for_ns;
}

bool Judge::has_waiter(const Account& a) const {
  auto of_it = [&](const Waiter* w) { return w->id == a.id; };
  return std::ranges::any_of(memory_waiters_, of_it) || std::ranges::any_of(door_waiters_, of_it);
}

// Whether its memory is all that threads which have woken wait for.
bool Judge::wakes_away(const Account& a) const {
  return a.saved && !a.abandoned && a.woken > 0 && !has_waiter(a);
}

bool Judge::sleeps_away(const Account& a) const {
  return a.saved && a.woken == 0 && !has_waiter(a);
}

// Whether the job may leave for one that has `pages` to bring back.
bool Judge::makes_room_for(const Account& a, uint64_t pages) const {
  uint64_t held = a.held.load(std::memory_order_relaxed);
  return a.live_job() && held_ - held + pages <= budget_ && can_leave(a);
}

void Governor::change_places() {
  uint64_t now = now_ns(), blocks = 0, iterations = 0;
  bool any_away = false, all_aside = true, still = true;
  for (const Account& a : accounts()) {
    blocks += a.allocations + a.frees;
    iterations += telemetry_->slot(a.id, kIterations);
    bool away = a.saved > 0 && !a.abandoned && !sleeps_away(a);
    any_away |= away;
    all_aside &= !away || stands_aside(a);
    still &= !a.id || !a.live_job() || a.saved || stands_still(a);
  }
  if (std::exchange(blocks_seen_, blocks) != blocks) moved_ns_ = now;
  if (std::exchange(iterations_seen_, iterations) != iterations) ended_ns_ = now;
  if (!any_away || parked_for_) moved_ns_ = ended_ns_ = now;
  uint64_t patience = all_aside ? kAsleepNs : kNothingMovesNs;  // they are away on purpose
  bool moves = now - std::max(moved_ns_, last_free_ns_) < patience;
  if (!still || (moves && now - ended_ns_ < kNoIterationNs)) return;
  for (uint32_t away = 1; away <= jobs_; ++away)
    for (uint32_t id = 1; id <= jobs_; ++id) {
      Account &here = accounts_[id], &other = accounts_[away];
      if (!other.saved || other.abandoned || sleeps_away(other) ||
          !makes_room_for(here, other.saved) || !take_out(here))
        continue;
      // Of `here`, pages that are not in use yet stay.
      if (held_ + other.saved > budget_) return;
      moved_ns_ = ended_ns_ = now;
      if (!pool_.can_restore(other.saved)) return pump();
      aside_ &= ~(uint64_t{1} << away);  // somebody here needs it to go on
      restore(other, 0);
      pump();
      return;
    }
}

void Governor::note_moves(Account& a, uint64_t now) {
  uint64_t blocks = a.allocations + a.frees;
  bool moved = std::exchange(a.blocks_seen, blocks) != blocks;
  if (moved || a.moved_ns == 0 || a.saved || a.waiting_threads > 0) a.moved_ns = now;
  if (computes_outside(a)) a.computed_ns = now;
}

// Whether the waiter would go on if `a` left, that has been asleep for long. A door may be shut
// by an iteration that goes on, and ends; so may memory be kept from one under way, but not by who
// waits for some itself.
bool Judge::waits_for_sleeper(const Waiter& w, const Account& a, uint64_t now) const {
  const Account& waiting = accounts_[w.id];
  uint64_t patience = w.no_wait                      ? kAsleepForALockNs
                      : w.pages > 0 && !waiting.open ? kAsleepBesideSetUpNs
                                                     : kAsleepNs;
  auto sleeps = [&](const Account& o) {
    return now - std::max(o.moved_ns, w.since_ns) >= patience;
  };
  auto goes_on = [&](const Account& o) {
    bool ends = w.pages == 0 || o.waiting_threads == 0;
    return o.open && !o.saved && o.id != w.id && ends && !sleeps(o);
  };
  if (a.id == w.id || !a.live_job() || waiting.saved || !sleeps(a) || !can_leave(a)) return false;
  bool at_an_end = w.pages == 0 || (waiting.open && !w.no_wait);
  if (at_an_end && std::ranges::any_of(accounts(), goes_on)) return false;
  uint64_t held = a.held.load(std::memory_order_relaxed);
  return w.pages ? held_ + w.pages <= budget_ + held : would_help(w, held);
}

// The one to leave for the waiter, if that helps: best one in an iteration, since others wait for
// its end.
Account* Governor::find_sleeper(const Waiter& w, uint64_t now) {
  Account* found = nullptr;
  for (uint32_t id = 1; id <= jobs_; ++id)
    if (Account& a = accounts_[id];
        (!found || a.open > found->open) && waits_for_sleeper(w, a, now))
      found = &a;
  return found;
}

void Governor::make_way() {
  uint64_t now = now_ns();  // under the lock: nobody has asked or moved later
  for (uint32_t id = 1; id <= jobs_; ++id) note_moves(accounts_[id], now);
  if (parked_for_) return;
  Account* sleeper = nullptr;
  for (const auto* waiters : {&memory_waiters_, &door_waiters_})
    for (const Waiter* w : *waiters)
      if (!sleeper) sleeper = find_sleeper(*w, now);
  if (sleeper) copy_out(*sleeper);
}

// Whether it stands still, and will until `come_back`.
bool Governor::send_away(Account& a) {
  a.away = true;
  if (stands_still(a)) return true;
  come_back(a);
  return false;
}

void Governor::come_back(Account& a) {
  a.away = false;
  parked_changed_.notify_all();
}

}  // namespace gpushare
