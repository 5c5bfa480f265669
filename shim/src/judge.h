// What the books say, without changing them: which step is safe, which door may open, who could
// leave. Whoever asks has the lock.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "books.h"
#include "forecast.h"
#include "safety.h"

namespace gpushare {

class Judge : protected Books {
 public:
  // A job may compute in no iteration, and make and free no block, for so long before one in its
  // iteration is refused what it keeps: the two may wait for each other. To be set before any.
  std::chrono::nanoseconds longest_computing = std::chrono::minutes(10);

 protected:
  using Books::Books;

  enum class Verdict { kGo, kWait, kImpossible };
  struct Judged {
    Verdict verdict;
    Shut shut = {};     // what it would wait for
    bool over = false;  // beyond the claim
  };
  enum class Stuck { kInIterations, kEverywhere, kBesideOthers };

  // Steps: charging pages (judge.cpp, leases.cpp, forecast_waits.cpp).
  bool safe_after(const Account& a, uint64_t n, uint64_t claim, uint64_t limit) const;
  uint64_t claim_of(const Account& a) const;
  uint64_t lease_for(const Account& a) const;
  bool others_open(const Account& a) const;
  bool others_live(const Account& a) const;
  // What is left of it when the job is at its door.
  uint64_t keeps(const Account& a) const;
  // Whether the job could run by itself beside what the others keep, and `more` pages.
  bool fits_beside_residues(const Account& a, uint64_t more) const;
  // Whether each of the others could still run by itself; of two that are both away, each would
  // keep the other one away for ever, so who comes back looks at `to_those_here` alone.
  bool leaves_room(const Account& a, uint64_t n, bool to_those_here = false) const;
  // Whether the others' doors alone would let the waiter go on; if not, it waits for one to end,
  // and nobody makes way for it.
  bool has_a_place(const Waiter& w) const;
  // Whether `a` leaves room for `o`, whose need is known: not if it is away and goes after it.
  bool counts_as_here(const Account& o, const Account& a) const;
  // The same, asked by each of those who wait about each other one: found once in a moment.
  bool has_place_now(Waiter& w) const;
  bool others_measured(const Account& a) const;
  bool computes_outside(const Account& a) const;
  uint64_t waited_for(const Waiter& w) const;
  // How long the process has been stopped just now (Ctrl-Z, a batch system), as far as ticks tell.
  uint64_t stopped_until(uint64_t now_ns) const;
  uint64_t hoped_ns(const Account& a, uint64_t n, uint64_t since_ns) const;
  Judged judge_alone(const Account& a, uint64_t n, uint64_t waited_ns) const;
  Judged judge_set_up(const Account& a, uint64_t n, uint64_t waited_ns) const;
  // Of the other jobs, among those in an iteration if there is one, who holds most.
  uint32_t largest_other(const Account& a) const;
  uint64_t others_hold(const Account& a) const;  // pages of other jobs
  const char* why_nothing_left(const Account& a) const;
  std::string figures(const Account& a, uint64_t n, uint64_t bytes) const;
  uint64_t predicted_memory_wait(const Account& a, uint64_t n) const;

  // Doors: what keeps a job's shut, if anything does (openings.cpp, planned_looks.cpp).
  Shut shut_by(const Account& a, Waiter* self) const;
  Shut shut_by_others_waiting(const Account& a, const Waiter* self) const;
  Shut shut_by_memory_waiters(bool only_saved) const;
  Shut shut_beside_others(const Account& a, Waiter* self) const;
  Shut shut_by_permits(const Account& a, Waiter* self) const;
  bool lingers(const Account& o, const Account& a) const;
  UnderWay progress_of(const Account& o) const;
  std::vector<UnderWay> others_under_way(const Account& a) const;
  const Forecast& forecast_of_next(const Account& a) const;
  bool forecast_fits(const Account& a, Waiter* self) const;
  uint64_t room_for_iterations(const Account& a) const;
  uint64_t planned_wait(const Account& a) const;
  uint64_t predicted_turn_wait(const Account& a, const Account& o) const;
  uint64_t permit_wait(const Account& a, const Account& o) const;
  uint64_t planned_for(const Account& a, Shut shut) const;
  template <typename T>
  T standing(const Account& a, T Account::*of) const;
  int compare(const Account& a, const Account& b) const;
  bool goes_after(const Account& a, const Account& b) const;
  bool starts_apart(const Account& a, const Account& b) const;
  bool take_turns(const Account& a, const Account& b) const;
  bool had_the_last_turn(const Account& a) const;
  bool keeps_turn(const Account& a) const;
  bool waits_for_turn_of_another(const Account& a, const Account& newcomer) const;
  bool has_quanta(int order) const;
  std::vector<Waiter*> doors_in_order() const;
  double least_granted(const Account& a) const;
  // The next moment that a start is planned for; kNotPredicted if none is.
  uint64_t next_look() const;

  // Who stands still, and who could leave or come back (rests.cpp, copying_out.cpp, aside.cpp).
  bool is_asleep(const Account& a, uint64_t for_ns) const;
  bool rests_for_fork(const Account& a) const;
  bool is_held_for_fork(const Account& a) const;
  bool parked_by_another(const Account& a) const {
    uint32_t forks = parked_for_;
    return forks && forks != a.id;
  }
  bool all_parked(uint32_t except, bool set_up_too, bool strictly) const;
  bool stuck(Stuck where) const;
  bool all_threads_wait(bool or_rest) const;
  bool is_wedged(const Waiter& w, bool in_iterations) const;
  Waiter* find_victim(bool in_iterations) const;
  Waiter* last_at_a_door(Waiter* victim) const;
  uint64_t hoped_until(const Waiter* victim, uint64_t now) const;
  bool is_told_to_stand_aside(const Account& a) const;
  bool stands_aside(const Account& a) const;
  bool has_room_to_return(const Account& a, uint64_t pages) const;
  uint64_t kept_by_nobody_here() const;
  bool has_no_way_back(const Account& a) const;
  bool stands_still(const Account& a) const;
  bool can_leave(const Account& a) const;
  bool may_leave(const Waiter& w) const;
  bool would_help(const Waiter& w, uint64_t more) const;
  uint64_t could_leave() const;
  bool helps(const Waiter& w, uint64_t all, bool only_for_room) const;
  bool leaves_rather(const Waiter& w, const Waiter& than) const;
  // Who is passed for long by those that go after it (passing.cpp).
  bool is_asked_to_leave(const Account& a, const Account& first) const;
  uint64_t lacks(const Waiter& w, bool they_left) const;
  bool is_passed(const Waiter& w) const;
  uint32_t passes_for_long(const Account& a) const;
  bool makes_way_for_passed(const Account& a) const;
  bool is_impatient(const Account& a) const;
  Waiter* find_leaver(bool only_for_room) const;
  bool has_waiter(const Account& a) const;
  bool wakes_away(const Account& a) const;
  bool sleeps_away(const Account& a) const;
  bool makes_room_for(const Account& a, uint64_t pages) const;
  bool waits_for_sleeper(const Waiter& w, const Account& a, uint64_t now) const;
  Verdict judge_return(const Account& a, uint64_t pages) const;

  // The budget (budget.cpp).
  uint64_t least_budget() const;
  bool cut_fits() const;
  uint64_t planned_budget() const { return std::min(budget_, wanted_budget_); }
};

}  // namespace gpushare
