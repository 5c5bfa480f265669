// A fork is a door for all: what another thread has locked in just that moment the child has locked
// for ever. So the other jobs stop at their doors, or where they wait, while one forks.
#include <chrono>

#include "clock.h"
#include "gil.h"
#include "governor.h"

namespace gpushare {

namespace {
constexpr auto kSetUpStops = std::chrono::milliseconds(20);
constexpr uint64_t kWillSleepOnNs = 1000000000;  // asleep for so long: it won't wake in that moment
}  // namespace

bool Judge::all_parked(uint32_t except, bool set_up_too) const {
  for (const Account& a : accounts()) {
    bool computes = (a.open && !a.saved && !is_asleep(a, kWillSleepOnNs)) ||
                    (set_up_too && a.id && a.live_job());
    if (computes && a.id != except && a.waiting_threads == 0) return false;
  }
  return true;
}

void Governor::stop_for_fork(uint32_t id) {
  GilReleased released;
  Lock lock(mutex_);
  Account& a = accounts_[id];
  if (!parked_for_ || parked_for_ == id || a.open || a.ended || a.cancelled) return;
  ++a.waiting_threads, ++a.woken;  // it is not asleep: what leaves meanwhile is to come back
  Waiter w = begin_other_wait(a, 0, {kForking, parked_for_});
  parked_changed_.notify_all();
  parked_changed_.wait(lock, [&] { return (!parked_for_ || a.cancelled) && !a.away; });
  end_other_wait(w);
  --a.waiting_threads, --a.woken;
}

// It counts as parked, and what it waits is no part of its iteration's time.
void Governor::begin_fork_wait(Account& a) {
  if (a.memory_waits++ == 0) a.waiting_since_ns = now_ns();
  ++a.waiting_threads, ++a.woken;
}

void Governor::await_turn_to_fork(uint32_t id, bool waits) {
  GilReleased released;
  Lock lock(mutex_);
  Account& a = accounts_[id];
  if (waits) {
    begin_fork_wait(a);
    return parked_changed_.notify_all();
  }
  parked_changed_.wait(lock, [&] { return !a.away; });
  --a.waiting_threads, --a.woken;
  if (--a.memory_waits == 0) pause(a, now_ns());
}

bool Governor::park_others(uint32_t id, uint64_t timeout_ns) {
  GilReleased released;
  uint64_t start = now_ns();
  auto until = std::chrono::steady_clock::now() + std::chrono::nanoseconds(timeout_ns);
  Lock lock(mutex_);
  // One fork at a time; a second one waits as a parked job does.
  Account& a = accounts_[id];
  begin_fork_wait(a);
  parked_changed_.notify_all();
  auto may_fork = [&] { return (parked_for_ == 0 || parked_for_ == id) && !a.away; };
  bool mine = parked_changed_.wait_until(lock, until, may_fork);
  parked_changed_.wait(lock, [&] { return !a.away; });  // nobody forks without its memory
  --a.waiting_threads, --a.woken;
  bool parked = false;
  if (mine) {
    parked_for_ = id;
    ++forks_;
    forking_ = true;
    parked_changed_.wait_for(lock, kSetUpStops, [&] { return all_parked(id, true); });
    parked = parked_changed_.wait_until(lock, until, [&] { return all_parked(id, false); });
  }
  if (--a.memory_waits == 0) pause(a, now_ns());
  telemetry_->header(kParks, telemetry_->header(kParks) + 1);
  telemetry_->header(kParkNs, telemetry_->header(kParkNs) + now_ns() - start);
  return parked;
}

void Governor::unpark_others(uint32_t id) {
  Lock lock(mutex_);
  if (parked_for_ != id || --forks_ > 0) return;
  parked_for_ = 0;
  forking_ = false;
  parked_changed_.notify_all();
  pump();
}

}  // namespace gpushare
