// Whether a door may open now: who waits already, what is safe, and what is worth starting.
#include <algorithm>
#include <vector>

#include "clock.h"
#include "governor.h"

namespace gpushare {

namespace {

constexpr uint64_t kMoments = 64;  // of an iteration, that are told apart
constexpr uint64_t kLingersNs =
    50000000;  // past an iteration's end; loading data is shorter mostly

}  // namespace

// Where a newcomer starts, so that it does not have the device for itself until it has caught up.
double Judge::least_granted(const Account& a) const {
  const Account* least = nullptr;
  for (const Account& o : accounts())
    if (o.id && o.id != a.id && o.live_job() && o.curve.known() && o.opening > 0 &&
        (!least || o.granted < least->granted))
      least = &o;
  return least ? least->granted : 0;
}

// A set-up waits a while until others have been measured. Who is to be measured goes as the first
// of those that wait for that, or whoever goes before it would pass them too.
template <typename T>
T Judge::standing(const Account& a, T Account::*of) const {
  T first = a.*of;
  if (a.curve.known()) return first;
  for (const Waiter* w : memory_waiters_)
    if (w->reasons.why() == kMeasured) first = std::min(first, accounts_[w->id].*of);
  return first;
}

// Less than nought: `a` goes before `b`, whoever asked first.
int Judge::compare(const Account& a, const Account& b) const {
  auto by = [&](auto of) {
    auto of_a = standing(a, of), of_b = standing(b, of);
    return (of_a > of_b) - (of_a < of_b);
  };
  if (order_ == Order::kFair) return by(&Account::granted);
  return order_ == Order::kRanked ? by(&Account::rank) : 0;
}

// Whether `a` starts only where no iteration of `b` is open. The other way round it may be
// different.
bool Judge::starts_apart(const Account& a, const Account& b) const {
  const Permit& p = a.permit[b.id];
  return policy_ == Policy::kTemporal || (p.valid && p.made == kNever);
}

bool Judge::take_turns(const Account& a, const Account& b) const {
  return starts_apart(a, b) && starts_apart(b, a);
}

// Of the jobs that it takes turns with, and itself.
bool Judge::had_the_last_turn(const Account& a) const {
  return a.opening > 0 && std::ranges::none_of(accounts(), [&](const Account& o) {
           return o.id != a.id && o.opening > a.opening && take_turns(a, o);
         });
}

// Whether the job may start once more although others wait for their turn.
bool Judge::keeps_turn(const Account& a) const {
  return had_the_last_turn(a) && now_ns() < a.turn_began_ns + quantum_ns_;
}

// Whether the job could not start now anyway, so that nobody passes it who takes no turns with it.
bool Judge::waits_for_turn_of_another(const Account& a, const Account& newcomer) const {
  return !take_turns(a, newcomer) && std::ranges::any_of(accounts(), [&](const Account& o) {
    return o.open && !o.saved && o.id != a.id && o.id != newcomer.id && take_turns(a, o);
  });
}

// A turn lasts for a quantum, whoever has been granted less meanwhile; a higher rank ends it.
bool Judge::has_quanta(int order) const { return order == 0 || order_ == Order::kFair; }

std::vector<Waiter*> Judge::doors_in_order() const {
  std::vector<Waiter*> doors(door_waiters_.begin(), door_waiters_.end());
  if (order_ != Order::kFifo)
    std::ranges::stable_sort(doors, [&](const Waiter* a, const Waiter* b) {
      return compare(accounts_[a->id], accounts_[b->id]) < 0;
    });
  return doors;
}

// First in first out, a job that has asked waits for at most one new iteration of each other job,
// or a quantum of each where they take turns. Under the other orders it waits for those that go
// before it, and who goes first by its rank waits for none.
Shut Judge::shut_by_others_waiting(const Account& a, const Waiter* self) const {
  const Account& last = accounts_[comes_again_];
  if (last.id && last.id != a.id && !stands_aside(last)) {
    int order = compare(last, a);
    if (order < 0) return {kBehind, last.id};
    if (has_quanta(order) && take_turns(a, last) && keeps_turn(last)) return {kTurn, last.id};
  }
  if (uint32_t passed = passes_for_long(a)) return {kBehind, passed};
  bool asked_later = true;
  for (Waiter* w : door_waiters_) {
    if (w == self) asked_later = false;
    const Account& o = accounts_[w->id];
    if (o.id == a.id) continue;
    int order = compare(o, a);
    if (order > 0 || (order == 0 && !asked_later) || !has_place_now(*w)) continue;
    if (!o.trusted()) return {kMeasured, o.id};
    bool turns = take_turns(o, a);
    if (order_ == Order::kRanked && order < 0) return {kBehind, o.id};
    if (!turns && (w->starts_seen[a.id] == 0 || waits_for_turn_of_another(o, a))) continue;
    if (turns && has_quanta(order) && keeps_turn(a)) continue;
    return {turns ? kTurn : kBehind, o.id};
  }
  return {};
}

Shut Judge::shut_by_memory_waiters(bool only_saved) const {
  for (Waiter* w : memory_waiters_)
    if ((accounts_[w->id].saved || !only_saved) && has_place_now(*w)) return {kMemoryFirst, w->id};
  for (const Account& o : accounts())
    if (wakes_away(o) && has_room_to_return(o, 0)) return {kMemoryFirst, o.id};
  return {};
}

// What iterations may hold together, beside what those who are in none keep.
uint64_t Judge::room_for_iterations(const Account& a) const {
  uint64_t budget = planned_budget(), taken = headroom_;
  for (const Account& o : accounts())
    if (!o.open && o.id != a.id) taken += o.held.load(std::memory_order_relaxed);
  return budget - std::min(budget, taken);
}

// How far the open iteration has come, of the kind that it probably is.
UnderWay Judge::progress_of(const Account& o) const {
  uint32_t made = o.recorder.ordinal();
  uint64_t since = o.recorder.since(now_ns());
  const IterationKinds::Kind* kind = o.iteration_kinds.likely();
  return kind ? under_way(kind->forecast, kind->curve, made, since)
              : under_way(o.forecast, o.curve, made, since);
}

std::vector<UnderWay> Judge::others_under_way(const Account& a) const {
  std::vector<UnderWay> found;
  for (const Account& o : accounts())
    if (o.open && !o.saved && o.id != a.id) found.push_back(progress_of(o));
  return found;
}

const Forecast& Judge::forecast_of_next(const Account& a) const {
  const IterationKinds::Kind* kind = a.iteration_kinds.likely();
  return kind ? kind->forecast : a.forecast;
}

// Zico's time shift for any number of jobs. Frees come by the hundred in an iteration, and most of
// them find everybody where the last one did.
bool Judge::forecast_fits(const Account& a, Waiter* self) const {
  std::vector<UnderWay> running = others_under_way(a);
  const Forecast& next = forecast_of_next(a);
  uint64_t room = room_for_iterations(a);
  uint64_t now = room + reinterpret_cast<uintptr_t>(&next) + a.curve_version;
  for (const UnderWay& u : running) {
    uint64_t moment = kMoments * u.elapsed_ns / (u.forecast->time(u.forecast->length()) + 1);
    now = (now + reinterpret_cast<uintptr_t>(u.forecast) + u.step * kMoments + moment) *
          0x9e3779b97f4a7c15;
  }
  if (self && self->misfit == now) return false;
  bool fits = fit_together(next, running, room);
  if (self) self->misfit = fits ? 0 : now;
  return fits;
}

// How long until the iteration under way has come to the point that the job's permit names.
uint64_t Judge::permit_wait(const Account& a, const Account& o) const {
  const Permit& permit = a.permit[o.id];
  if (!permit.valid || permit.made == 0) return 0;
  UnderWay there = under_way(o.forecast, o.curve, o.recorder.ordinal(), o.recorder.since(now_ns()));
  uint32_t last = std::min<uint64_t>(permit.made, o.curve.length());
  uint64_t end = o.forecast.time(o.forecast.length());
  uint64_t at = permit.made <= o.curve.length() && last ? o.curve.time(last - 1) : end;
  return at - std::min(at, there.elapsed_ns);
}

// How long until permits are forecast to let the job start, those under way going on at their pace;
// kNotPredicted if it is for something else that it waits.
uint64_t Judge::planned_wait(const Account& a) const {
  std::vector<UnderWay> running = others_under_way(a);
  if (!a.forecast.known() || running.empty()) return kNotPredicted;
  uint64_t longest = 0, at_least = 0;
  bool by_forecast = false;
  for (const UnderWay& u : running) {
    if (!u.forecast->known()) return kNotPredicted;
    uint64_t end = u.forecast->time(u.forecast->length());
    longest = std::max(longest, end - std::min(end, u.elapsed_ns));
  }
  for (const Account& o : accounts()) {
    if (!o.open || o.saved || o.id == a.id) continue;
    if (take_turns(a, o)) return predicted_turn_wait(a, o);
    if (starts_apart(a, o)) return longest;
    at_least = std::max(at_least, permit_wait(a, o));
    by_forecast |= a.permit[o.id].by_forecast;
  }
  if (at_least > 0 && !by_forecast) return at_least;
  const Forecast& next = forecast_of_next(a);
  uint64_t room = room_for_iterations(a);
  std::vector<UnderWay> then(running.size());
  auto fits = [&](uint64_t ahead) {
    std::ranges::transform(running, then.begin(), [&](UnderWay u) { return later(u, ahead); });
    return fit_together(next, then, room);
  };
  if (at_least >= longest || (at_least > 0 && fits(at_least))) return at_least;
  return first_moment(at_least, longest, fits);
}

// Whether the iteration has ended and the script does something else before it comes to its door:
// it writes a checkpoint, or all that comes after the last one. It needs no more memory, so where
// the job at the door has room beside what it still holds, nobody's turn waits for it.
bool Judge::lingers(const Account& o, const Account& a) const {
  if (!o.at_door()) return false;
  uint64_t now = now_ns(), marked = o.marked_ns.load(std::memory_order_relaxed);
  uint64_t others = held_ - a.held.load(std::memory_order_relaxed);
  return now > marked + kLingersNs && o.recorder.since(now) > kLingersNs &&
         others + a.curve.claim(0) + headroom_ <= planned_budget();
}

// A permit says from which point of another's iteration on this one may start, and whether it must
// be forecast to run through with all that are under way then. Where none lies ready the start is
// not planned, only safe: no door waits for the scheduler.
Shut Judge::shut_by_permits(const Account& a, Waiter* self) const {
  uint32_t by_forecast = 0;
  for (const Account& o : accounts()) {
    if (!o.open || o.saved || o.id == a.id) continue;
    const Permit& p = a.permit[o.id];
    if (!p.valid) continue;
    if (o.recorder.ordinal() < p.made && !lingers(o, a))
      return {p.made == kNever ? kTurn : kShift, o.id};
    if (p.by_forecast) by_forecast = o.id;
  }
  if (by_forecast && !forecast_fits(a, self)) return {kShift, by_forecast};
  return {};
}

Shut Judge::shut_beside_others(const Account& a, Waiter* self) const {
  auto goes_on = [&](const Account& o) {
    return o.open && !o.saved && o.id != a.id && !lingers(o, a);
  };
  if (policy_ == Policy::kTemporal && std::ranges::any_of(accounts(), goes_on))
    return {kTurn, largest_other(a)};
  if (!a.trusted()) return {kMeasured, largest_other(a)};
  for (const Account& o : accounts())
    if (goes_on(o) && !o.trusted()) return {kMeasured, o.id};
  if (Shut shut = shut_by_memory_waiters(false)) return shut;
  uint64_t budget = planned_budget(), reserve = std::min(budget, headroom_);
  if (!safe_after(a, 0, a.curve.claim(0), budget - reserve)) return {kClaims, largest_other(a)};
  return shut_by_permits(a, self);
}

Shut Judge::shut_by(const Account& a, Waiter* self) const {
  if (a.cancelled) return {};
  if (parked_by_another(a)) return {kForking, parked_for_};
  if (policy_ == Policy::kUnmanaged) return {};
  if (stands_aside(a)) return {kSetAside, largest_other(a)};
  if (Shut shut = shut_by_others_waiting(a, self)) return shut;
  if (Shut shut = shut_by_memory_waiters(true)) return shut;
  if (others_open(a)) return shut_beside_others(a, self);
  // Alone it may try what its curve says can't fit, since the next iteration may need less.
  if (!others_live(a) || fits_beside_residues(a, 0)) return {};
  return {kResidues, largest_other(a)};
}

}  // namespace gpushare
