// Whether a step may be taken now: the safety check applied to accounts, doors and set-ups.
#include <algorithm>

#include "clock.h"
#include "governor.h"
#include "safety.h"

namespace gpushare {

namespace {
constexpr uint64_t kMeasureNs = 10000000000;  // a set-up waits this long for another's profile,
constexpr uint64_t kMeasureInAllNs = 60000000000;  // and in all so long: some are never measured
constexpr uint64_t kLeaveNs =
    10000000000;  // an iteration waits this long for others at their doors
}  // namespace

uint64_t Judge::claim_of(const Account& a) const {
  uint64_t held = a.held.load(std::memory_order_relaxed);
  if (!a.curve.known()) return held;
  uint32_t ordinal = a.recorder.ordinal();
  return std::max(held, a.iteration_kinds.claim(ordinal, a.curve.claim(ordinal)));
}

bool Judge::others_live(const Account& a) const {
  for (const Account& o : accounts())
    if (o.id && o.id != a.id && o.live_job()) return true;
  return false;
}

bool Judge::others_open(const Account& a) const {
  for (const Account& o : accounts())
    if (o.open && !o.saved && o.id != a.id) return true;
  return false;
}

bool Judge::safe_after(const Account& a, uint64_t n, uint64_t claim, uint64_t limit) const {
  Open open[kAccounts];
  uint32_t count = 0;
  uint64_t all = held_ + n;
  for (uint32_t i = 1; i <= jobs_; ++i) {
    const Account& o = accounts_[i];
    bool asks = o.id == a.id;
    if ((!o.open || o.saved) && !(asks && claim > 0)) continue;
    uint64_t held = o.held.load(std::memory_order_relaxed) + (asks ? n : 0);
    uint64_t taken = std::max(held, o.lease);
    all += taken - held;
    uint64_t most = std::max(taken, asks ? claim : claim_of(o));
    uint64_t residue = o.curve.known() ? o.curve.residue() : held;
    open[count++] = {taken, std::max(most, residue), residue};
  }
  return all <= limit && is_safe(open, count, limit - all);
}

// Between a job's first iteration and the one that is measured it holds little and its need is not
// known yet. A job that has come as far itself does not wait for that: each could wait for the
// other. So could it and one that was copied out, which waits for room.
bool Judge::others_measured(const Account& a) const {
  auto begun = [&](const Account& o) { return telemetry_->slot(o.id, kIterations) > 0; };
  for (const Account& o : accounts()) {
    if (!o.id || o.id == a.id) continue;
    bool between = o.live_job() && !o.saved && !o.curve.known() && begun(o) && !begun(a);
    if (o.open ? o.alone : between) return true;
  }
  return false;
}

uint64_t Judge::keeps(const Account& a) const {
  uint64_t held = a.held.load(std::memory_order_relaxed);
  return a.open && a.curve.known() ? std::min(held, a.curve.residue()) : held;
}

// Of a whole iteration, whatever part of one is still to come now: it is the next that must fit.
bool Judge::fits_beside_residues(const Account& a, uint64_t more) const {
  uint64_t sum = more + std::max(keeps(a), a.curve.known() ? a.curve.claim(0) : 0);
  for (const Account& o : accounts())
    if (o.id != a.id) sum += keeps(o);
  return sum <= planned_budget();
}

bool Judge::counts_as_here(const Account& o, const Account& a) const {
  if (o.id == a.id || !o.live_job() || !o.curve.known()) return false;
  return !o.saved || order_ == Order::kFair || !goes_after(o, a);
}

bool Judge::leaves_room(const Account& a, uint64_t n, bool to_those_here) const {
  for (const Account& o : accounts()) {
    if (!o.id || !counts_as_here(o, a)) continue;
    if (o.saved && (to_those_here || sleeps_away(o))) continue;
    if (!fits_beside_residues(o, n)) return false;
  }
  return true;
}

bool Judge::has_a_place(const Waiter& w) const {
  const Account& a = accounts_[w.id];
  if (w.pages == 0 && stands_aside(a)) return false;
  if (a.saved) return has_room_to_return(a, w.pages);
  if (a.open || !others_live(a)) return true;
  uint64_t held = a.held.load(std::memory_order_relaxed), sum = held + w.pages;
  if (w.pages == 0 && a.curve.known()) sum = std::max(held, a.curve.claim(0));
  uint64_t largest_rise = 0;
  for (const Account& o : accounts()) {
    if (o.id == w.id) continue;
    uint64_t rest = o.held.load(std::memory_order_relaxed);
    if (o.id && counts_as_here(o, a)) {
      rest = o.open ? std::min(rest, o.curve.residue()) : rest;
      uint64_t most = o.curve.claim(0);
      largest_rise = std::max(largest_rise, most - std::min(most, rest));
    }
    sum += rest;
  }
  // Pages taken at a door come back; those of a set-up stay, beside the largest of the others.
  return sum + (w.pages ? largest_rise : 0) <= budget_;
}

bool Judge::has_place_now(Waiter& w) const {
  if (w.judged_at != moment_) {
    w.judged_at = moment_;
    w.has_place = has_a_place(w);
  }
  return w.has_place;
}

uint32_t Judge::largest_other(const Account& a) const {
  const Account* found = nullptr;
  auto has = [](const Account& o) { return std::max(o.held.load(), o.lease); };
  for (const Account& o : accounts()) {
    if (!o.id || o.id == a.id || !o.live_job()) continue;
    if (!found || o.open > found->open || (o.open == found->open && has(o) > has(*found)))
      found = &o;
  }
  return found ? found->id : 0;
}

// What a job takes before its first iteration it may keep to its end: it must leave each job whose
// need is known the room to run by itself, or wait until one ends. A need that is being measured is
// waited for.
Judge::Judged Judge::judge_set_up(const Account& a, uint64_t n, uint64_t waited_ns) const {
  uint64_t before = telemetry_->slot(a.id, static_cast<Slot>(kWaitedNs + uint32_t{kMeasured} - 1));
  bool patient = waited_ns < kMeasureNs && before < kMeasureInAllNs;
  if (others_measured(a) && patient) return {Verdict::kWait, {kMeasured, largest_other(a)}};
  uint64_t alone = a.held.load(std::memory_order_relaxed) + n +
                   accounts_[0].held.load(std::memory_order_relaxed);
  uint64_t budget = planned_budget(), reserve = std::min(budget, headroom_);
  uint64_t limit = others_open(a) ? budget - reserve : budget;
  bool room = leaves_room(a, n);
  if (room && safe_after(a, n, 0, limit)) return {Verdict::kGo};
  if (alone > budget_ || !others_live(a)) return {Verdict::kImpossible};
  return {Verdict::kWait, {room ? kClaims : kResidues, largest_other(a)}};
}

// Whether the job computes between its iterations, or before its first one, with memory in hand.
bool Judge::computes_outside(const Account& a) const {
  return a.id && a.live_job() && !a.open && !a.saved && a.held > 0 && a.waiting_threads == 0 &&
         !stands_still(a);
}

// The job lacks `n` pages since `since_ns`. When one of the others was last seen to compute so,
// that has made or freed a block within longest_computing, if what such jobs keep would do, and
// what can leave now.
uint64_t Judge::hoped_ns(const Account& a, uint64_t n, uint64_t since_ns) const {
  uint64_t last = since_ns, others = could_leave();
  auto patience = static_cast<uint64_t>(longest_computing.count());
  for (const Account& o : accounts()) {
    if (!o.id || o.id == a.id || !o.live_job()) continue;
    last = std::max(last, std::min(o.computed_ns, std::max(o.moved_ns, since_ns) + patience));
    if (computes_outside(o)) others += o.held.load(std::memory_order_relaxed);
  }
  return held_ + n <= budget_ + others ? last : since_ns;
}

// Nobody else is in an iteration, so nobody will give anything back; but what the others keep can
// be copied out when they are at their doors. Who computes has yet to come there.
Judge::Judged Judge::judge_alone(const Account& a, uint64_t n, uint64_t waited_ns) const {
  uint64_t shared = accounts_[0].held.load(std::memory_order_relaxed), now = now_ns();
  now -= stopped_until(now);
  bool fits_alone = a.held.load(std::memory_order_relaxed) + n + shared <= budget_;
  // Who was kept waiting by an iteration until now has not waited for doors yet.
  uint64_t last = std::max(hoped_ns(a, n, now - waited_ns), alone_since_ns_);
  bool hopes = now < last + kLeaveNs;
  if (!others_live(a) || !fits_alone || !hopes) return {Verdict::kImpossible};
  return {Verdict::kWait, {kResidues, largest_other(a)}};
}

}  // namespace gpushare
