// Leases: pages that an open iteration is promised before it needs them, a segment at a time
// (Waterwave, section 4.3: a node group's memory is there before the group runs). The safety check
// counts them as held, so a lease is given where holding all of it would be safe; where it would
// not, memory comes page by page as without.
//
// A promise is worth no wait: it ends as soon as progress shows that the segment needs less, and
// all of them end where not all can be kept, where an overrun would wait for them, while a smaller
// budget is waited for, and when somebody has waited for a while.
#include <algorithm>

#include "clock.h"
#include "governor.h"

namespace gpushare {

namespace {
constexpr uint64_t kLongestKeptNs = 100000000;  // who is promised something may idle
}

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

// To be called before leases are counted: progress alone ends some. Not all can be kept where the
// check would fail if they were held: the headroom has grown, somebody has taken what is outside of
// its reach, or an iteration is not what it was taken for.
void Governor::trim_leases() {
  if (split_ == Segments::kNone) return;
  bool any = false;
  for (uint32_t i = 1; i <= jobs_; ++i) {
    Account& a = accounts_[i];
    if (a.lease == 0) continue;
    a.iteration_kinds.recognise(a.recorder);
    a.lease = std::min({a.lease, a.segments.need(a.recorder.ordinal()), claim_of(a)});
    any = true;
  }
  if (any && !safe_after(accounts_[0], 0, 0, budget_ - headroom_)) drop_leases();
}

void Governor::drop_leases_that_last() {
  if (memory_waiters_.empty()) return;
  uint64_t now = now_ns();
  for (const Waiter* w : memory_waiters_)
    if (now - w->since_ns >= kLongestKeptNs) return drop_leases();
}

// Pages that the job is to be promised for the segment that it is in; 0: none. Who waits already
// comes first.
uint64_t Judge::lease_for(const Account& a) const {
  bool others =
      std::ranges::any_of(memory_waiters_, [&](const Waiter* w) { return w->id != a.id; });
  if (others || !a.trusted() || a.cancelled || wanted_budget_ < budget_) return 0;
  return std::min({a.segments.need(a.recorder.ordinal()), claim_of(a), a.limit});
}

// After the job's next step, to `held` pages, was found safe.
void Governor::promise(Account& a, uint64_t held) {
  if (split_ == Segments::kNone) return;
  uint64_t level = lease_for(a), now = a.held.load(std::memory_order_relaxed);
  if (level <= std::max(a.lease, held)) return;
  if (!safe_after(a, level - now, std::max(level, claim_of(a)), budget_ - headroom_)) return;
  a.lease = level;
  telemetry_->add(a.id, kLeases, 1);
}

}  // namespace gpushare
