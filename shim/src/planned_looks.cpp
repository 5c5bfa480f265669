// When doors are looked at though nobody has freed anything: a start is planned for a moment in
// another job's iteration, where that may compute for long without an event.
#include <algorithm>
#include <chrono>

#include "clock.h"
#include "governor.h"

namespace gpushare {

namespace {
constexpr uint64_t kLeastNs = 250000, kMostNs = 10000000;     // from a look in vain to the next one
constexpr uint64_t kBetweenLooksNs = 250000, kPumpShare = 4;  // of which a pump may be one
constexpr uint64_t kMixed = 0x9e3779b97f4a7c15;
}  // namespace

// Tells one thing to wait for, beside one set of open iterations, from another.
uint64_t Judge::planned_for(const Account& a, Shut shut) const {
  uint64_t all = kMixed * shut.by + a.permit[shut.by].made;
  for (const Account& o : accounts())
    if (o.open && !o.saved && o.id != a.id) all = all * kMixed + o.opened_ns;
  return all;
}

// What was planned stays as long as the same iterations are under way and its time has not come.
// Where those are late it is looked at again, ever more seldom: ticks see to the rest.
void Governor::plan_look(Waiter& w, Shut shut) {
  w.plans = shut.why == kShift && w.first;
  if (!w.plans || comes_again_) return;  // who comes again is about to open something, or to wait
  const Account& a = accounts_[w.id];
  uint64_t now = now_ns(), beside = planned_for(a, shut);
  bool same = w.planned_for == beside, first = w.planned_for == 0;
  if (same && w.look_ns > now) return;
  w.in_vain = same ? std::min(2 * w.in_vain, kMostNs) : kLeastNs;
  w.planned_for = beside;
  uint64_t wait = planned_wait(a);
  bool from_the_start = first && w.reasons.since_ns() == w.since_ns;
  if (from_the_start && wait != kNotPredicted) w.predicted_ns = now - w.since_ns + wait;
  w.look_ns = wait == kNotPredicted ? wait : now + std::max(wait, w.in_vain);
  if (w.look_ns < looks_at_ns_) looks_changed_.notify_all();
}

uint64_t Judge::next_look() const {
  uint64_t next = unpark_at_ns_ ? unpark_at_ns_ : kNotPredicted;
  for (const Waiter* w : door_waiters_)
    if (w->plans && !accounts_[w->id].saved) next = std::min(next, w->look_ns);
  return next;
}

void Governor::look_at_doors() {
  Lock lock(mutex_);
  pump();
}

// Between two looks the lock is free for a while, however long they take.
void Governor::look_at_doors_until(uint64_t end_ns) {
  Lock lock(mutex_);
  uint64_t not_before = 0;
  for (uint64_t now = now_ns(); now < end_ns; now = now_ns()) {
    uint64_t next = std::max(next_look(), not_before);
    if (next <= now) {
      unpark_if_due(now);
      pump();
      uint64_t after = now_ns();
      not_before = after + std::max(kBetweenLooksNs, kPumpShare * (after - now));
      continue;
    }
    looks_at_ns_ = std::min(next, end_ns);
    looks_changed_.wait_for(lock, std::chrono::nanoseconds(looks_at_ns_ - now));
    looks_at_ns_ = 0;
  }
}

}  // namespace gpushare
