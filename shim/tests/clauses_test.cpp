// Each clause of what keeps memory safe where another one seldom speaks first: the check itself,
// who may set up or overrun, what keeps a door shut, and when a smaller budget has come. One short
// schedule each, under a virtual clock.
#include "../src/simulation.h"
#include "check.h"

using namespace gpushare;
using Answer = Simulation::Answer;

namespace {

constexpr uint64_t kPage = 4096, kSecond = 1000000000;

// Rises in two steps to its peak.
uint32_t begin(Simulation& s, uint32_t peak, uint64_t residue = 0) {
  std::vector<uint32_t> held = {peak / 2, peak, peak / 2};
  uint32_t id = s.begin_job(std::move(held), {0, kSecond, 2 * kSecond}, residue);
  CHECK(id > 0);
  return id;
}

void rise(Simulation& s, uint32_t id, uint32_t peak) {
  CHECK(s.hold(id, peak / 2) == Answer::kGo && s.hold(id, peak) == Answer::kGo);
}

uint64_t waited(Simulation& s, uint32_t id, Why why) {
  return s.telemetry().slot(id, static_cast<Slot>(uint32_t{kWaitedNs} + why - 1));
}

// Two of the hundred pages are headroom, which no step within its claim may use.
void the_headroom_is_left() {
  Simulation s(Policy::kZico, kPage, 100);
  uint32_t a = begin(s, 60), b = begin(s, 78);
  CHECK(s.door(a) == Answer::kGo && s.door(b) == Answer::kGo);
  rise(s, a, 60);
  CHECK(s.hold(b, 39) == Answer::kWaits);
  s.free_down_to(a, 59);
  CHECK(s.look(b) == Answer::kGo);
}

// More than claimed is there for both, but what the first one will come to is not known.
void one_overruns_at_a_time() {
  Simulation s(Policy::kZico, kPage, 100);
  uint32_t a = begin(s, 20), b = begin(s, 20);
  CHECK(s.door(a) == Answer::kGo && s.door(b) == Answer::kGo);
  CHECK(s.hold(a, 22) == Answer::kGo);
  CHECK(s.hold(b, 22) == Answer::kWaits);
  s.set_time(kSecond);
  s.free_down_to(a, 0);
  CHECK(s.look(b) == Answer::kWaits);
  CHECK(s.door(a) == Answer::kGo);  // its iteration is over
  CHECK(s.look(b) == Answer::kGo);
  CHECK(waited(s, b, kOverran) > 0);
}

// Two kinds, told apart by their first allocations: one of 6 pages that keeps nothing, and one of
// `peak` that keeps `residue`.
uint32_t begin_of_two_kinds(Simulation& s, uint32_t peak, uint32_t residue) {
  uint32_t id = s.begin_job(std::vector<uint32_t>(30, peak), std::vector<uint64_t>(30, 0), residue);
  for (bool small : {false, true, false, true, false, true}) {
    CHECK(s.door(id) == Answer::kGo);
    s.free_down_to(id, 0);
    for (int n = 0; n < 24; ++n) CHECK(s.hold(id, small ? 5 : 7) == Answer::kGo);
    for (int n = 0; n < 6; ++n) CHECK(s.hold(id, small ? 6 : peak) == Answer::kGo);
    s.free_down_to(id, small ? 0 : residue);
  }
  return id;
}

void begin_the_small_kind(Simulation& s, uint32_t id) {
  CHECK(s.door(id) == Answer::kGo);
  for (int n = 0; n < 24; ++n) CHECK(s.hold(id, 5) == Answer::kGo);
  CHECK(s.hold(id, 6) == Answer::kGo);
}

// An iteration of a small kind may keep as much all the same as one of another kind has kept, so it
// claims that. Else what it keeps would be taken from what is there, and more, which leaves next to
// infinite room.
void a_claim_covers_what_is_kept() {
  Simulation s(Policy::kZico, kPage, 40);
  uint32_t a = begin_of_two_kinds(s, 30, 20);
  begin_the_small_kind(s, a);
  uint32_t b = begin(s, 8, 2), c = s.begin_job({}, {}, 0);
  CHECK(s.governor().try_charge(c, 27, true));  // with a lock in hand that others may want
  CHECK(s.door(b) == Answer::kWaits);           // six pages are left, and one of headroom
  s.governor().uncharge(c, 27);
  CHECK(s.look(b) == Answer::kGo);
}

// Once an iteration holds more than the kind that it was taken for, it claims what all kinds do.
void a_mistaken_kind_claims_what_all_do() {
  Simulation s(Policy::kZico, kPage, 60);
  uint32_t a = begin_of_two_kinds(s, 50, 0);
  begin_the_small_kind(s, a);
  uint32_t b = begin(s, 45);
  CHECK(s.door(b) == Answer::kGo && s.hold(b, 15) == Answer::kGo);
  CHECK(s.hold(a, 15) == Answer::kWaits);  // of 50, and b needs 30 more
  s.end_job(b);
  CHECK(s.look(a) == Answer::kGo && s.hold(a, 50) == Answer::kGo);
  CHECK(s.telemetry().slot(a, kOverruns) == 0);
}

// Job b was interrupted, so that its door opens; what it holds is not counted on to come back.
void what_is_not_known_comes_back_to_nobody() {
  Simulation s(Policy::kZico, kPage, 100);
  uint32_t a = begin(s, 80), b = s.begin_job({}, {}, 0);
  CHECK(s.door(a) == Answer::kGo);
  s.governor().cancel(b);
  CHECK(s.door(b) == Answer::kGo && s.hold(b, 50) == Answer::kGo);
  CHECK(s.hold(a, 40) == Answer::kWaits);
  s.end_job(b);
  CHECK(s.look(a) == Answer::kGo);
}

// Each of the others could run beside what job b takes, once the other one is at its door.
void a_set_up_waits_for_iterations_under_way() {
  Simulation s(Policy::kZico, kPage, 130);
  uint32_t a = begin(s, 60), c = begin(s, 60), b = begin(s, 20);
  for (uint32_t id : {a, c}) {
    CHECK(s.door(id) == Answer::kGo);
    rise(s, id, 60);
  }
  CHECK(s.hold(b, 20) == Answer::kWaits);
  CHECK_EMPTY(s.check());
  s.set_time(kSecond);
  s.free_down_to(a, 30);
  CHECK(s.look(b) == Answer::kGo && waited(s, b, kClaims) > 0);
  CHECK_EMPTY(s.check());
}

// Whatever is under way, it has no room until one of them ends: that is what it waits for.
void a_set_up_that_has_no_place_says_so() {
  Simulation s(Policy::kZico, kPage, 130);
  uint32_t a = begin(s, 60, 40), c = begin(s, 60, 40), b = begin(s, 80);
  for (uint32_t id : {a, c}) {
    CHECK(s.door(id) == Answer::kGo);
    rise(s, id, 60);
  }
  CHECK(s.hold(b, 40) == Answer::kWaits);
  s.set_time(kSecond);
  s.free_down_to(a, 40), s.free_down_to(c, 40);
  s.set_time(3 * kSecond);
  s.end_job(a);
  CHECK(s.look(b) == Answer::kGo);
  CHECK(waited(s, b, kClaims) == 0 && waited(s, b, kResidues) > 2 * kSecond);
}

// As steps of the iteration beside it do.
void a_set_up_leaves_the_headroom() {
  Simulation s(Policy::kZico, kPage, 100);
  uint32_t a = begin(s, 60), b = begin(s, 40);
  CHECK(s.door(a) == Answer::kGo);
  rise(s, a, 60);
  CHECK(s.hold(b, 38) == Answer::kGo && s.hold(b, 40) == Answer::kWaits);
  s.free_down_to(a, 58);
  CHECK(s.look(b) == Answer::kGo);
}

void nobody_starts_beside_one_that_is_measured() {
  Simulation s(Policy::kZico, kPage, 100);
  uint32_t a = s.begin_job({}, {}, 0), b = begin(s, 20);
  CHECK(s.door(a) == Answer::kGo && s.hold(a, 10) == Answer::kGo);
  CHECK(s.door(b) == Answer::kWaits);
  s.set_time(kSecond);
  s.end_job(a);
  CHECK(s.look(b) == Answer::kGo && waited(s, b, kMeasured) > 0);
}

// Job a has been copied out between its first iteration and the one that is measured. It may wait
// for what the set-up holds that would wait for it.
void who_is_away_is_not_waited_for_to_be_measured() {
  Simulation s(Policy::kZico, kPage, 100);
  uint32_t a = s.begin_job({}, {}, 0), b = s.begin_job({}, {}, 0), c = begin(s, 20);
  CHECK(s.door(a) == Answer::kGo && s.door(c) == Answer::kWaits);
  CHECK(s.door(a) == Answer::kWaits && s.look(c) == Answer::kGo);
  rise(s, c, 20);
  CHECK(s.hold(b, 10) == Answer::kWaits);
  s.governor().account(a).saved = 1;
  s.set_time(kSecond);
  s.free_down_to(c, 0);
  CHECK(s.look(b) == Answer::kGo && waited(s, b, kMeasured) > 0);
  s.governor().account(a).saved = 0;
}

// Job a has exceeded its claim by more than headroom may become.
void nobody_starts_beside_one_that_is_not_trusted() {
  Simulation s(Policy::kZico, kPage, 100);
  uint32_t a = begin(s, 20), b = begin(s, 20);
  CHECK(s.door(a) == Answer::kGo && s.hold(a, 40) == Answer::kGo);
  s.free_down_to(a, 0);
  CHECK(s.door(a) == Answer::kGo && s.door(b) == Answer::kWaits);
  s.end_job(a);
  CHECK(s.look(b) == Answer::kGo);
}

// Job c would fit, but would take what job b waits for.
void memory_comes_before_doors() {
  Simulation s(Policy::kZico, kPage, 100);
  uint32_t a = begin(s, 60), b = begin(s, 60), c = begin(s, 4);
  CHECK(s.door(a) == Answer::kGo && s.door(b) == Answer::kGo);
  rise(s, a, 60);
  CHECK(s.hold(b, 30) == Answer::kGo && s.hold(b, 60) == Answer::kWaits);
  CHECK(s.door(c) == Answer::kWaits);
  s.set_time(kSecond);
  s.free_down_to(a, 0);
  CHECK(s.look(b) == Answer::kGo && s.look(c) == Answer::kGo);
  CHECK(waited(s, c, kMemoryFirst) > 0);
}

// Job b starts apart from the others, which overlap without a gap; each of them starts once more
// before it, and no more.
void a_door_is_reserved_for_who_was_passed() {
  Simulation s(Policy::kZico, kPage, 300);
  uint32_t a = begin(s, 60), c = begin(s, 60), b = begin(s, 60);
  s.set_permits({{b, a, {true, kNever, 0}}, {b, c, {true, kNever, 0}}});
  CHECK(s.door(a) == Answer::kGo && s.door(c) == Answer::kGo);
  CHECK(s.door(b) == Answer::kWaits);
  CHECK(s.door(a) == Answer::kGo && s.door(c) == Answer::kGo);
  CHECK(s.door(a) == Answer::kWaits && s.look(b) == Answer::kWaits);
  CHECK(s.door(c) == Answer::kGo);  // beside job b, which went first
  CHECK(s.look(b) == Answer::kGo && s.most_passed(b) == 1);
}

// Who goes first but has no place keeps nobody out, and does from the moment that it has one. Job a
// keeps job b at its door all the while.
void who_comes_to_have_a_place_goes_first() {
  Simulation s(Policy::kZico, kPage, 100);
  s.set_order(Order::kRanked, 0);
  uint32_t a = begin(s, 40), b = begin(s, 60), c = begin(s, 20), d = begin(s, 50, 50);
  s.set_rank(c, 1);
  s.set_permits({{b, a, {true, kNever, 0}}, {c, a, {true, 2, 0}}});
  CHECK(s.door(a) == Answer::kGo && s.hold(a, 20) == Answer::kGo);
  CHECK(s.door(d) == Answer::kGo && s.hold(d, 50) == Answer::kGo);
  CHECK(s.door(b) == Answer::kWaits && s.door(c) == Answer::kWaits);
  s.end_job(d);
  CHECK(s.hold(a, 40) == Answer::kGo);  // from here on job c may start beside it
  s.look_at_doors();
  CHECK(s.look(b) == Answer::kWaits && s.look(c) == Answer::kWaits);
  s.end_job(a);
  CHECK(s.look(b) == Answer::kGo);
}

// What an iteration that is measured needs may not fit.
void a_cut_waits_for_what_is_measured() {
  Simulation s(Policy::kZico, kPage, 100);
  uint32_t a = s.begin_job({}, {}, 0);
  CHECK(s.door(a) == Answer::kGo && s.hold(a, 10) == Answer::kGo);
  CHECK_EMPTY(s.set_budget(60));
  CHECK(s.governor().pool_state().budget == 100);
  CHECK(s.hold(a, 80) == Answer::kGo);
  s.free_down_to(a, 0);
  CHECK(s.governor().pool_state().budget == 100);
  CHECK(s.door(a) == Answer::kGo);  // the cut came at its door
  CHECK(s.governor().pool_state().budget == 60);
}

// What was copied out has to come back, with what it asked for.
void a_cut_waits_for_what_is_away() {
  Simulation s(Policy::kZico, kPage, 100);
  uint32_t a = begin(s, 40), b = begin(s, 40);
  CHECK(s.door(a) == Answer::kGo && s.door(b) == Answer::kGo);
  CHECK(s.hold(b, 40) == Answer::kGo && s.hold(a, 60) == Answer::kGo);
  CHECK(s.hold(a, 70) == Answer::kWaits && s.hold(b, 60) == Answer::kWaits);
  for (uint64_t t = 1; t < 10 && !s.ready(); ++t) s.set_time(t * 10000000), s.tick();
  CHECK(s.look(b) == Answer::kGo && s.telemetry().slot(a, kCopiesOut) == 1);
  CHECK_EMPTY(s.set_budget(75));
  CHECK(s.governor().pool_state().budget == 100);
  s.end_job(b);
  s.tick();
  CHECK(s.look(a) == Answer::kGo);
}

// Job a is copied out in its iteration, with 64 of 100 pages: 24 more than it claimed. What no job
// owns leaves it the room to come back. Job b is judged as if a were not there, though with a it
// would not be safe: all that others keep leaves less than a claims.
void who_is_away_is_not_counted_but_has_room_to_return() {
  Simulation s(Policy::kZico, kPage, 100);
  std::vector<uint64_t> times(4);
  uint32_t a = s.begin_job({40, 40, 40, 40}, times, 0);
  uint32_t b = s.begin_job({20, 30, 40, 20}, times, 15);
  uint32_t c = s.begin_job({10, 10, 10, 10}, times, 10);
  for (uint32_t id : {a, b, c}) CHECK(s.door(id) == Answer::kGo);
  CHECK(s.hold(c, 10) == Answer::kGo && s.hold(b, 20) == Answer::kGo);
  CHECK(s.hold(a, 40) == Answer::kGo && s.hold(a, 64) == Answer::kGo);
  CHECK(s.hold(a, 75) == Answer::kWaits && s.hold(b, 30) == Answer::kWaits);
  CHECK(s.hold(c, 31) == Answer::kWaits);
  for (uint64_t t = 1; t < 10 && !s.ready(); ++t) s.set_time(t * 10000000), s.tick();
  CHECK(s.look(b) == Answer::kGo && s.telemetry().slot(a, kCopiesOut) == 1);
  CHECK(!s.governor().try_charge(0, 37, true) && s.governor().try_charge(0, 36, true));
  CHECK(s.hold(b, 40) == Answer::kGo);
}

// Job a has left asleep in its iteration. When it wakes there is room for what it held, but then
// neither it nor job b could go on to its end.
void who_wakes_comes_back_when_that_is_safe() {
  Simulation s(Policy::kZico, kPage, 100);
  std::vector<uint64_t> times(4);
  uint32_t a = s.begin_job({50, 85, 85, 85}, times, 0);
  uint32_t b = s.begin_job({10, 60, 60, 60}, times, 0);
  CHECK(s.door(a) == Answer::kGo && s.door(b) == Answer::kGo);
  CHECK(s.hold(a, 50) == Answer::kGo && s.hold(b, 10) == Answer::kGo);
  s.governor().begin_rest(a);
  CHECK(s.hold(b, 60) == Answer::kWaits);
  for (uint64_t t = 1; t < 10 && !s.ready(); ++t) s.set_time(t * kSecond), s.tick();
  CHECK(s.look(b) == Answer::kGo && s.telemetry().slot(a, kCopiesOut) == 1);
  s.free_down_to(b, 20);
  s.governor().account(a).woken = 1;
  s.tick();
  CHECK(s.governor().account(a).saved == 50);
  s.free_down_to(b, 10);
  s.tick();
  CHECK(s.governor().account(a).saved == 0 && s.governor().account(a).held == 50);
}

// Job a has come to need more than the budget that is waited for, though at their doors the two
// hold nothing.
void a_cut_that_a_need_outgrew_is_taken_back() {
  Simulation s(Policy::kZico, kPage, 150);
  uint32_t a = begin(s, 60), b = begin(s, 65);
  CHECK(s.door(a) == Answer::kGo && s.door(b) == Answer::kGo);
  CHECK(s.hold(b, 32) == Answer::kGo && s.hold(b, 65) == Answer::kGo);
  CHECK_EMPTY(s.set_budget(66));
  CHECK(s.hold(a, 70) == Answer::kGo);
  s.free_down_to(a, 0);
  CHECK(s.door(a) == Answer::kWaits);
  s.end_job(b);
  PoolState after = s.governor().pool_state();
  CHECK(after.budget == 150 && after.cuts_given_up == 1 && after.cut_needs == 70);
  CHECK(s.look(a) == Answer::kGo && s.hold(a, 70) == Answer::kGo);
}

// What an iteration has held beyond its claim, the next one will claim.
void a_cut_leaves_room_for_what_was_held_just_now() {
  Simulation s(Policy::kZico, kPage, 150);
  uint32_t a = begin(s, 60);
  CHECK(s.door(a) == Answer::kGo);
  CHECK(s.hold(a, 70) == Answer::kGo);
  s.free_down_to(a, 0);
  CHECK(s.set_budget(66).find("the jobs need at least") != std::string::npos);
  CHECK_EMPTY(s.set_budget(70));
  CHECK(s.door(a) == Answer::kGo && s.hold(a, 70) == Answer::kGo);
}

// What job a asks for beyond its claim comes when job b has ended, if the budget is left to it.
void a_cut_leaves_room_for_what_is_waited_for() {
  Simulation s(Policy::kZico, kPage, 100);
  uint32_t a = begin(s, 40), b = begin(s, 40);
  CHECK(s.door(a) == Answer::kGo && s.door(b) == Answer::kGo);
  rise(s, a, 40), rise(s, b, 40);
  CHECK(s.hold(a, 70) == Answer::kWaits);
  CHECK(s.set_budget(69).find("the jobs need at least") != std::string::npos);
  CHECK_EMPTY(s.set_budget(70));
  s.set_time(kSecond);
  s.end_job(b);
  CHECK(s.look(a) == Answer::kGo && s.governor().pool_state().budget == 70);
}

}  // namespace

int main() {
  the_headroom_is_left();
  one_overruns_at_a_time();
  a_claim_covers_what_is_kept();
  a_mistaken_kind_claims_what_all_do();
  what_is_not_known_comes_back_to_nobody();
  a_set_up_waits_for_iterations_under_way();
  a_set_up_that_has_no_place_says_so();
  a_set_up_leaves_the_headroom();
  nobody_starts_beside_one_that_is_measured();
  who_is_away_is_not_waited_for_to_be_measured();
  nobody_starts_beside_one_that_is_not_trusted();
  memory_comes_before_doors();
  a_door_is_reserved_for_who_was_passed();
  who_comes_to_have_a_place_goes_first();
  a_cut_waits_for_what_is_measured();
  a_cut_waits_for_what_is_away();
  who_is_away_is_not_counted_but_has_room_to_return();
  who_wakes_comes_back_when_that_is_safe();
  a_cut_that_a_need_outgrew_is_taken_back();
  a_cut_leaves_room_for_what_was_held_just_now();
  a_cut_leaves_room_for_what_is_waited_for();
  puts("clauses: ok");
}
