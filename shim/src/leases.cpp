// Leases: pages that an open iteration is promised before it needs them, a segment at a time
// (Waterwave, section 4.3: a node group's memory is there before the group runs). The safety check
// counts them as held, so a lease is granted where holding all of it would be safe, and who has one
// meets no check until it is used up. What a segment no longer needs is nobody's promise any more.
#include <algorithm>

#include "governor.h"

namespace gpushare {

void Governor::set_split(uint64_t pages) {
  Lock lock(mutex_);
  if (split_ == pages) return;
  split_ = pages;
  for (uint32_t i = 1; i <= jobs_; ++i) {
    accounts_[i].segments.cut(accounts_[i].curve, split_);
    accounts_[i].lease = 0;
  }
  pump();
}

// To be called before leases are counted: progress alone ends some.
void Governor::trim_leases() {
  if (split_ == Segments::kNone) return;
  for (uint32_t i = 1; i <= jobs_; ++i) {
    Account& a = accounts_[i];
    if (a.lease == 0) continue;
    bool has = a.open && !a.saved;
    a.lease = has ? std::min(a.lease, a.segments.need(a.recorder.ordinal())) : 0;
  }
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

// What the job is to have, at least `held`, for the segment that it is in or begins with.
uint64_t Governor::lease_for(const Account& a, uint64_t held) const {
  if (!a.trusted()) return held;
  uint64_t need =
      a.open ? std::min(a.segments.need(a.recorder.ordinal()), claim_of(a)) : a.segments.need(0);
  return std::max(held, need);
}

// Where all of it is safe but may be more than there is.
void Governor::set_lease_if_it_fits(Account& a, uint64_t held) {
  uint64_t most = lease_for(a, held);
  bool fits = taken() - taken_by(a) + most <= budget_ - headroom_;
  set_lease(a, fits ? most : 0);
}

void Governor::set_lease(Account& a, uint64_t pages) {
  a.lease = split_ == Segments::kNone ? 0 : pages;
}

}  // namespace gpushare
