// Stranded jobs: what was copied out of one has no room beside what ended jobs and libraries keep,
// which may be for ever. A larger budget helps it; else the host gives the job up. Its threads
// can't go on without their memory, not even to be told, so they wait here until the process ends.
#include <algorithm>

#include "clock.h"
#include "governor.h"

namespace gpushare {

// Pages that no job which is still here will give back.
uint64_t Judge::kept_by_nobody_here() const {
  uint64_t sum = 0;
  for (const Account& o : accounts())
    if (!o.id || !o.live_job()) sum += o.held.load(std::memory_order_relaxed);
  return sum;
}

bool Judge::has_no_way_back(const Account& a) const {
  bool wants_to = a.live_job() && (a.woken > 0 || has_waiter(a));
  uint64_t all = a.held.load(std::memory_order_relaxed) + a.saved;
  return a.saved > 0 && wants_to && kept_by_nobody_here() + all > budget_;
}

// By the sampler.
void Governor::note_stranded() {
  uint64_t now = now_ns();
  for (uint32_t id = 1; id <= jobs_; ++id) {
    Account& a = accounts_[id];
    if (!has_no_way_back(a))
      a.stranded_since_ns = 0;
    else if (a.stranded_since_ns == 0)
      a.stranded_since_ns = now;
  }
}

Stranded Governor::stranded(uint32_t id) {
  Lock lock(mutex_);
  const Account& a = accounts_[id];
  if (a.stranded_since_ns == 0) return {};
  uint64_t kept = kept_by_nobody_here(), more = a.held.load(std::memory_order_relaxed);
  for (const Waiter* w : memory_waiters_)
    if (w->id == id) more += w->pages;
  uint64_t claim = a.curve.known() ? a.curve.claim(0) : 0, now = now_ns();
  now -= std::min(now - a.stranded_since_ns, stopped_until(now));
  uint64_t needs = kept + std::max(a.saved + more, claim);
  return {now - a.stranded_since_ns, a.saved, kept, budget_, needs};
}

bool Governor::abandon(uint32_t id) {
  Lock lock(mutex_);
  Account& a = accounts_[id];
  if (!has_no_way_back(a)) return false;
  a.abandoned = true;
  a.stranded_since_ns = 0;
  uint64_t now = now_ns();
  auto of_it = [&](Waiter* w) {
    if (w->id != id) return false;
    if (w->pages == 0 && !w->first) return true;  // told by the first of the job's threads
    w->refused = true;
    telemetry_->add(id, w->pages ? kMemoryWaitNs : kDoorWaitNs, now - w->since_ns);
    note_wait(*w, now);
    return true;
  };
  std::erase_if(memory_waiters_, of_it);
  std::erase_if(door_waiters_, of_it);
  end_locked(a);
  return true;
}

}  // namespace gpushare
