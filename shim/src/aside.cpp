// Jobs that are set aside. What a job keeps between its iterations leaves less room for those of
// the others, so fewer jobs at once may do more. A job that the scheduler sets aside starts no
// iteration: at its door what it holds is copied out (copying_out.cpp), and it comes back when it
// is set aside no longer. None is where no other job is there to run instead.
#include <algorithm>

#include "governor.h"

namespace gpushare {

void Governor::set_aside(uint64_t accounts) {
  Lock lock(mutex_);
  aside_ = accounts;
  pump();
}

uint64_t Governor::copied_out() {
  Lock lock(mutex_);
  uint64_t found = 0;
  for (const Account& a : accounts())
    found |= uint64_t{a.saved > 0 || (a.held == 0 && stands_aside(a))} << a.id;
  return found;
}

bool Judge::is_told_to_stand_aside(const Account& a) const { return aside_ >> a.id & 1; }

bool Judge::stands_aside(const Account& a) const {
  if (!is_told_to_stand_aside(a) || a.open || a.cancelled) return false;
  return std::ranges::any_of(accounts(), [&](const Account& o) {
    return o.id && o.live_job() && o.curve.known() && !o.saved && !is_told_to_stand_aside(o);
  });
}

// By the sampler, one at a time.
void Governor::send_aside() {
  if (!aside_ || parked_for_) return;
  auto goes = [&](const Waiter* w) { return stands_aside(accounts_[w->id]) && may_leave(*w); };
  auto found = std::ranges::find_if(door_waiters_, goes);
  if (found == door_waiters_.end()) return;
  Account& a = accounts_[(*found)->id];
  uint64_t failed_ns = a.copy_failed_ns;
  if (copy_out(a) || a.copy_failed_ns == failed_ns) return;
  aside_ &= ~(uint64_t{1} << a.id);  // there is no place to copy it to: better it runs
  pump();
}

}  // namespace gpushare
