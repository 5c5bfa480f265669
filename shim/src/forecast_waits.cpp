// How long a job that waits for its turn, or a step that waits for memory, will probably wait.
#include <algorithm>
#include <vector>

#include "clock.h"
#include "governor.h"
#include "safety.h"

namespace gpushare {

namespace {

// An iteration of another job, `ahead_ns` from now; `still`: it waits for memory itself.
struct Other {
  UnderWay now;
  bool still;
  UnderWay at(uint64_t ahead_ns) const { return still ? now : later(now, ahead_ns); }
  uint64_t left_ns() const {
    uint64_t end = now.forecast->time(now.forecast->length());
    return still ? 0 : end - std::min(end, now.elapsed_ns);
  }
};

}  // namespace

// Until the end of o's iteration in which its turn is over, and of the turns of those that asked
// earlier, all going on at their pace.
uint64_t Judge::predicted_turn_wait(const Account& a, const Account& o) const {
  auto whole = [](uint64_t ns, uint64_t iteration_ns) {
    uint64_t one = std::max<uint64_t>(iteration_ns, 1);
    return (ns + one - 1) / one * one;
  };
  auto turn_left = [&](const Account& job, uint64_t at_ns) {
    uint64_t end = job.turn_began_ns + quantum_ns_;
    bool keeps = had_the_last_turn(job) && has_quanta(compare(job, a)) && end > at_ns;
    return keeps ? end - at_ns : 0;
  };
  UnderWay now = progress_of(o);
  uint64_t duration = now.forecast->time(now.forecast->length());
  uint64_t wait = duration - std::min(duration, now.elapsed_ns);
  wait += whole(turn_left(o, now_ns() + wait), duration);
  for (const Waiter* w : door_waiters_) {
    if (w->id == a.id || order_ != Order::kFifo) break;
    const Account& ahead = accounts_[w->id];
    if (!w->first || ahead.saved || !take_turns(a, ahead)) continue;
    const Forecast& next = forecast_of_next(ahead);
    wait += whole(std::max<uint64_t>(quantum_ns_, 1), next.time(next.length()));
  }
  return wait;
}

// When the step of `n` pages is forecast to be safe, those under way going on at their pace;
// kNotPredicted where curves don't say: it waits for a set-up, or for a job's end.
uint64_t Judge::predicted_memory_wait(const Account& a, uint64_t n) const {
  if (!a.open || !a.trusted()) return kNotPredicted;
  uint64_t after = a.held.load(std::memory_order_relaxed) + n, at_doors = 0, longest = 0;
  std::vector<Other> others;
  for (const Account& o : accounts()) {
    if (o.id == a.id) continue;
    if (!o.open || o.saved) {
      at_doors += o.held.load(std::memory_order_relaxed);
      continue;
    }
    UnderWay now = progress_of(o);
    if (!now.forecast->known()) return kNotPredicted;
    others.push_back({now, o.memory_waits > 0});
    longest = std::max(longest, others.back().left_ns());
  }
  uint64_t residue = a.curve.residue(), limit = budget_ - headroom_;
  Open own{after, std::max({after, claim_of(a), residue}), residue};
  auto safe = [&](uint64_t ahead_ns) {
    Open open[kAccounts] = {own};
    uint32_t count = 1;
    uint64_t all = at_doors + after;
    for (const Other& o : others) {
      UnderWay u = o.at(ahead_ns);
      uint64_t held = u.forecast->held(u.step);
      all += held;
      if (u.step < u.forecast->length())
        open[count++] = {held, u.forecast->claim(u.step), u.forecast->residue()};
    }
    return all <= limit && is_safe(open, count, limit - all);
  };
  return safe(longest) ? first_moment(0, longest, safe) : kNotPredicted;
}

}  // namespace gpushare
