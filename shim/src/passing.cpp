// Who is passed for long. What the others keep may leave a job no room at its door, or for what it
// asks for before its first iteration: then it waits until one of them ends or keeps less, and they
// go on past it. That is well for a while, since many keep less soon. But where it goes before them
// by the order, it is they who are to wait. So after ten seconds those that go after it leave,
// where they wait themselves: at their doors, which stay shut for that, or in their set-ups.
//
// Not where the order is `fair`: who leaves has no room to come back before another job ends,
// however little it has been granted by then.
#include <algorithm>

#include "clock.h"
#include "governor.h"

namespace gpushare {

namespace {
constexpr uint64_t kPassedNs = 10000000000;
constexpr uint64_t kHeldNs = 2000000000;        // at its door, until the others have come as far,
constexpr uint64_t kCannotLeaveNs = 100000000;  // and who computes in another thread
}  // namespace

// Whether the job is to leave for `first`, or will be when it comes to a place where it can.
bool Judge::is_asked_to_leave(const Account& a, const Account& first) const {
  bool comes = a.held > 0 && (a.open || a.at_door() || has_waiter(a)) && !is_impatient(a);
  return a.id && a.id != first.id && a.live_job() && !a.saved && comes &&
         now_ns() >= a.goes_on_until_ns && goes_after(a, first);
}

// How many pages are too few for the waiter, beside what the others keep; all of those that are
// asked to leave being away, if `they_left`.
uint64_t Judge::lacks(const Waiter& w, bool they_left) const {
  const Account& a = accounts_[w.id];
  auto away = [&](const Account& o) { return they_left && is_asked_to_leave(o, a); };
  uint64_t sum = w.pages + (w.pages ? a.held.load(std::memory_order_relaxed) : 0), rise = 0;
  if (!w.pages) sum = std::max(keeps(a), a.curve.known() ? a.curve.claim(0) : 0);
  for (const Account& o : accounts()) {
    if (o.id == a.id || away(o)) continue;
    sum += keeps(o);
    // A set-up may keep what it takes to its end, so it leaves each of them the room to run.
    if (w.pages && o.id && counts_as_here(o, a))
      rise = std::max(rise, o.curve.claim(0) - std::min(o.curve.claim(0), keeps(o)));
  }
  return sum + rise - std::min(sum + rise, planned_budget());
}

bool Judge::is_passed(const Waiter& w) const {
  const Account& a = accounts_[w.id];
  if (policy_ == Policy::kUnmanaged || order_ == Order::kFair || waited_for(w) < kPassedNs)
    return false;
  bool here = !a.saved && !a.cancelled && !w.no_wait && !stands_aside(a);
  if (!here || (w.pages ? a.open : !a.at_door())) return false;
  return lacks(w, false) > 0 && lacks(w, true) == 0;
}

// Who has been passed for long and has no room because of the job, among others; 0: nobody.
uint32_t Judge::passes_for_long(const Account& a) const {
  if (!any_passed_) return 0;
  for (const auto* waiters : {&door_waiters_, &memory_waiters_})
    for (const Waiter* w : *waiters)
      if (is_passed(*w) && is_asked_to_leave(a, accounts_[w->id])) return w->id;
  return 0;
}

// Whether it is away, or to leave, for one that goes before it: then it comes back no sooner.
bool Judge::makes_way_for_passed(const Account& a) const {
  auto first = [&](const Waiter* w) {
    return w->id != a.id && goes_after(a, accounts_[w->id]) && is_passed(*w);
  };
  return any_passed_ &&
         (std::ranges::any_of(door_waiters_, first) || std::ranges::any_of(memory_waiters_, first));
}

// The last one that can leave for the waiter now, if all that can leave it enough.
Account* Governor::find_passer(const Waiter& w) {
  Account* last = nullptr;
  uint64_t sum = 0;
  for (uint32_t id = 1; id <= jobs_; ++id) {
    Account& a = accounts_[id];
    if (a.open || !has_waiter(a) || !is_asked_to_leave(a, accounts_[w.id]) || !can_leave(a))
      continue;
    sum += keeps(a);
    if (!last || goes_after(a, *last)) last = &a;
  }
  return sum >= lacks(w, false) ? last : nullptr;
}

// Those whose doors were shut for one that is passed, in vain, go on for as long as it has waited
// at least.
bool Governor::give_up_holding(bool at_once) {
  bool any = false;
  uint64_t now = now_ns();
  for (const Waiter* x : door_waiters_) {
    Account& a = accounts_[x->id];
    if (!passes_for_long(a)) {
      a.held_back_since_ns = 0;
      continue;
    }
    if (!a.held_back_since_ns) a.held_back_since_ns = now;
    uint64_t patience = at_once ? 0 : can_leave(a) ? kHeldNs : kCannotLeaveNs;
    if (now - a.held_back_since_ns < patience) continue;
    a.goes_on_until_ns = now + kPassedNs;
    any = true;
  }
  return any;
}

void Governor::end_passing() {
  auto passed = [this](const Waiter* w) { return is_passed(*w); };
  any_passed_ =
      std::ranges::any_of(door_waiters_, passed) || std::ranges::any_of(memory_waiters_, passed);
  if (parked_for_) return;
  if (any_passed_)
    for (const auto* waiters : {&door_waiters_, &memory_waiters_})
      for (const Waiter* w : *waiters) {
        Account* last = is_passed(*w) ? find_passer(*w) : nullptr;
        if (!last) continue;
        if (!copy_out(*last)) last->goes_on_until_ns = now_ns() + kPassedNs, pump();
        return;
      }
  if (give_up_holding(false)) pump();
}

}  // namespace gpushare
