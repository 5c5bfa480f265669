// When doors are looked at though nobody has freed anything: a start is planned for a moment in
// another job's iteration, where that may compute for long without an event.
#include <algorithm>
#include <chrono>

#include "clock.h"
#include "governor.h"

namespace gpushare {

namespace {
constexpr uint64_t kLeastNs = 100000, kLeastShare = 64;  // of an iteration, from a look to the next
}

// How long until the iteration under way has come to the point that the job's permit names.
uint64_t Governor::permit_wait(const Account& a, const Account& o) const {
  uint64_t ordinal = a.permit[o.id].ordinal;
  if (ordinal == 0 || ordinal > o.curve.length()) return kNotPredicted;
  UnderWay there = under_way(o.forecast, o.curve, o.recorder.ordinal(), o.recorder.since(now_ns()));
  uint64_t at = o.curve.time(static_cast<uint32_t>(ordinal) - 1);
  return std::max(at - std::min(at, there.elapsed_ns), o.curve.duration_ns() / kLeastShare);
}

// Tells one set of open iterations from another.
uint64_t Governor::open_beside(const Account& a) const {
  uint64_t all = 1;
  for (const Account& o : accounts())
    if (o.open && !o.saved && o.id != a.id) all = all * 0x9e3779b97f4a7c15 + o.opened_ns;
  return all;
}

// What was planned stays as long as the same iterations are under way and its time has not come.
void Governor::plan_look(Waiter& w, Shut shut) {
  if (shut.why != kShift || !w.first) {
    w.look_ns = kNotPredicted;
    return;
  }
  const Account& a = accounts_[w.id];
  uint64_t now = now_ns(), beside = open_beside(a);
  if (w.look_ns != kNotPredicted && w.look_ns > now && w.planned_beside == beside) return;
  bool by_forecast = a.permit[shut.by].ordinal == kByForecast;
  uint64_t wait = by_forecast ? forecast_wait(a) : permit_wait(a, accounts_[shut.by]);
  w.planned_beside = beside;
  w.look_ns = wait == kNotPredicted ? wait : now + std::max(wait, kLeastNs);
  if (w.look_ns < looks_at_ns_) looks_changed_.notify_all();
}

uint64_t Governor::next_look() const {
  uint64_t next = kNotPredicted;
  for (const Waiter* w : door_waiters_)
    if (!accounts_[w->id].saved) next = std::min(next, w->look_ns);
  return next;
}

void Governor::look_at_doors() {
  Lock lock(mutex_);
  pump();
}

void Governor::look_at_doors_until(uint64_t end_ns) {
  Lock lock(mutex_);
  for (uint64_t now = now_ns(); now < end_ns; now = now_ns()) {
    uint64_t next = next_look();
    if (next <= now) {
      pump();
      continue;
    }
    looks_at_ns_ = std::min(next, end_ns);
    looks_changed_.wait_for(lock, std::chrono::nanoseconds(looks_at_ns_ - now));
    looks_at_ns_ = 0;
  }
}

}  // namespace gpushare
