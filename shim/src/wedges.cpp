// When every job waits, and nothing that is under way makes room: what is done about it.
#include <algorithm>
#include <utility>

#include "clock.h"
#include "governor.h"

namespace gpushare {

namespace {
constexpr uint64_t kWedgeNs = 1000000000;    // every open iteration waits and nothing was freed
constexpr uint64_t kSureWedgeNs = 30000000;  // and there is no thread that could free anything
constexpr uint64_t kHopeNs = 10000000000;    // and there is one: no job is refused memory before
constexpr uint64_t kNotCountedOnNs = 5000000000;  // asleep for so long: it may never wake
}  // namespace

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
  if (now - std::max(wedged_since_ns_, last_free_ns_) < patience) return;
  if (!beside_others && grant_reserve(in_iterations)) return;
  Waiter* leaver = find_leaver(beside_others);
  bool left = leaver && copy_out(accounts_[leaver->id]);
  if (beside_others) {
    if (left) wedged_since_ns_ = 0;
    return;
  }
  Waiter* victim = find_victim(in_iterations);
  if (!left && !all_threads_wait(false) && now < hoped_until(victim, now)) return;
  wedged_since_ns_ = 0;
  if (left || (!victim && in_iterations)) return;
  if (!in_iterations) victim = last_at_a_door(victim);
  if (!victim) return;
  if (std::exchange(aside_, 0)) return pump();  // nobody is refused for what others would do
  if (give_up_holding(true)) {
    size_t waiting = memory_waiters_.size() + door_waiters_.size();
    pump();
    if (memory_waiters_.size() + door_waiters_.size() < waiting) return;
  }
  memory_waiters_.remove(victim);
  door_waiters_.remove(victim);
  Account& a = accounts_[victim->id];
  // Who has room is not refused for one that sleeps in its iteration with nothing in hand.
  bool opens = victim->pages == 0 && a.at_door() && would_help(*victim, 0);
  if (opens) {
    open(a);
    victim->granted_ns = granted_now();
  }
  victim->refused = !opens;
  release(*victim);
  if (opens) pump();  // its other threads are at that door
}

// Whether an iteration's wait, or one of any job that is here, is a part of the wedge.
bool Judge::is_wedged(const Waiter& w, bool in_iterations) const {
  const Account& a = accounts_[w.id];
  return !a.saved && (a.open || !in_iterations);
}

// The budget with its headroom: to the first one that asked for no more.
bool Governor::grant_reserve(bool in_iterations) {
  for (Waiter* w : memory_waiters_) {
    if (!is_wedged(*w, in_iterations) || held_ + w->pages > budget_) continue;
    const Account& a = accounts_[w->id];
    bool over = a.held.load(std::memory_order_relaxed) + w->pages > claim_of(a);
    memory_waiters_.remove(w);
    grant(*w, over && a.open && a.trusted());
    wedged_since_ns_ = 0;
    return true;
  }
  return false;
}

// The last one that asked, but for one that has asked for more than it claimed.
Waiter* Judge::find_victim(bool in_iterations) const {
  Waiter* victim = nullptr;
  for (Waiter* w : memory_waiters_) {
    if (!is_wedged(*w, in_iterations)) continue;
    if (!victim || accounts_[w->id].overrunning || !accounts_[victim->id].overrunning) victim = w;
  }
  return victim;
}

// The one that goes last, of those at their doors and `victim`.
Waiter* Judge::last_at_a_door(Waiter* victim) const {
  for (Waiter* w : door_waiters_)
    if (const Account& a = accounts_[w->id];
        !a.saved && (!victim || goes_after(a, accounts_[victim->id])))
      victim = w;
  return victim;
}

// Nobody is refused before: who computes may yet give something back.
uint64_t Judge::hoped_until(const Waiter* victim, uint64_t now) const {
  uint64_t last = std::max(wedged_since_ns_, last_free_ns_);
  if (victim)
    last =
        std::max(last, hoped_ns(accounts_[victim->id], victim->pages, now - waited_for(*victim)));
  return last + kHopeNs;
}

}  // namespace gpushare
