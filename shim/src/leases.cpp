// Leases: pages that an open iteration is promised before it needs them, a segment at a time
// (Waterwave, section 4.3: a node group's memory is there before the group runs). The safety check
// counts them as held, so a lease is given where holding all of it would be safe; where it would
// not, memory comes page by page as without. What a segment no longer needs is nobody's promise any
// more. Promises never keep anybody from what is safe without them once they can't all be kept:
// then all of them are off.
#include <algorithm>

#include "governor.h"

namespace gpushare {

void Governor::set_split(uint64_t pages) {
  Lock lock(mutex_);
  if (split_ == pages) return;
  split_ = pages;
  for (uint32_t i = 1; i <= jobs_; ++i) accounts_[i].segments.cut(accounts_[i].curve, split_);
  drop_leases();
  pump();
}

void Governor::drop_leases() {
  for (uint32_t i = 1; i <= jobs_; ++i) accounts_[i].lease = 0;
}

// To be called before leases are counted: progress alone ends some.
void Governor::trim_leases() {
  if (split_ == Segments::kNone) return;
  for (uint32_t i = 1; i <= jobs_; ++i) {
    Account& a = accounts_[i];
    if (a.lease == 0) continue;
    a.lease = std::min({a.lease, a.segments.need(a.recorder.ordinal()), claim_of(a)});
  }
}

// Whether the check would fail already now if all promised pages were held: the headroom has grown,
// somebody has taken what is outside of its reach, or an iteration is not what it was taken for.
bool Governor::leases_are_void() const {
  if (split_ == Segments::kNone) return false;
  bool any = std::ranges::any_of(accounts(), [](const Account& a) { return a.lease > 0; });
  return any && !safe_after(accounts_[0], 0, 0, budget_ - headroom_);
}

// Pages that the job holds or has a lease for.
uint64_t Governor::taken_by(const Account& a) const {
  return std::max(a.held.load(std::memory_order_relaxed), a.lease);
}

uint64_t Governor::taken() const {
  uint64_t sum = held_;
  for (const Account& a : accounts()) sum += taken_by(a) - a.held.load(std::memory_order_relaxed);
  return sum;
}

// What the job is to be promised, at least `held`, for the segment that it is in or begins with.
// Nothing more while the budget is to become smaller.
uint64_t Governor::lease_for(const Account& a, uint64_t held) const {
  if (!a.trusted() || a.cancelled || wanted_budget_ < budget_) return held;
  uint64_t need =
      a.open ? std::min(a.segments.need(a.recorder.ordinal()), claim_of(a)) : a.segments.need(0);
  return std::max(held, need);
}

void Governor::set_lease(Account& a, uint64_t pages) {
  if (pages > std::max(a.lease, a.held.load(std::memory_order_relaxed)))
    telemetry_->add(a.id, kLeases, 1);
  a.lease = pages;
}

// Of an iteration that is alone, or begins where its first segment was found safe: what is promised
// may be more than there is.
void Governor::set_lease_if_it_fits(Account& a, uint64_t held) {
  if (split_ == Segments::kNone) return;
  uint64_t level = lease_for(a, held);
  bool fits = taken() - taken_by(a) + level <= budget_ - headroom_;
  set_lease(a, fits ? level : 0);
}

}  // namespace gpushare
