// The governor under a virtual clock: waits take virtual time only, doors and permits are the
// governor's, and a wedge ends as it does for threads.
#include "../src/simulation.h"

#include "../src/clock.h"
#include "check.h"

using namespace gpushare;
using Answer = Simulation::Answer;

namespace {

constexpr uint64_t kPage = 4096, kSecond = 1000000000;

uint32_t begin(Simulation& s, uint32_t peak) {
  std::vector<uint32_t> held = {peak / 2, peak, peak / 2};
  uint32_t id = s.begin_job(std::move(held), {0, kSecond, 2 * kSecond}, 0);
  CHECK(id > 0);
  return id;
}

void memory_that_is_freed_lets_a_waiter_go_on() {
  Simulation s(Policy::kZico, kPage, 100);
  uint32_t a = begin(s, 60), b = begin(s, 60);
  s.set_permits({{b, a, {true, 0, 0}}}), s.set_permits({{a, b, {true, 0, 0}}});
  CHECK(s.door(a) == Answer::kGo && s.door(b) == Answer::kGo);
  CHECK(s.hold(a, 30) == Answer::kGo && s.hold(a, 60) == Answer::kGo);
  CHECK(s.hold(b, 30) == Answer::kGo);
  CHECK(s.hold(b, 60) == Answer::kWaits);
  CHECK(s.ready() == 0 && s.look(b) == Answer::kWaits);
  s.set_time(5 * kSecond);
  CHECK(s.hold(a, 30) == Answer::kGo);
  CHECK(s.ready() == uint64_t{1} << b);
  CHECK(s.look(b) == Answer::kGo && s.ready() == 0);
  CHECK(s.telemetry().slot(b, kMemoryWaitNs) == 5 * kSecond - 1);
  CHECK(s.governor().account(b).held == 60);
  CHECK_EMPTY(s.check());
  s.end_job(a), s.end_job(b);
  CHECK(s.telemetry().header(kHeldTotal) == 0);
  CHECK_EMPTY(s.check());
}

// Job a never ends its first iteration. Each step of b's set-up waits ten seconds for its profile,
// and after a minute none does any more.
void a_set_up_does_not_wait_for_ever_for_a_profile() {
  Simulation s(Policy::kZico, kPage, 300);
  uint32_t a = s.begin_job({}, {}, 0), b = s.begin_job({}, {}, 0);
  CHECK(s.door(a) == Answer::kGo && s.hold(a, 50) == Answer::kGo);
  uint64_t now = 1, pages = 0;
  for (int n = 0; n < 6; ++n) {
    CHECK(s.hold(b, ++pages) == Answer::kWaits);
    s.set_time(now += 9 * kSecond);
    s.tick();
    CHECK(s.look(b) == Answer::kWaits);
    s.set_time(now += kSecond + 1);
    s.tick();
    CHECK(s.look(b) == Answer::kGo);
  }
  for (int n = 0; n < 9; ++n) CHECK(s.hold(b, ++pages) == Answer::kGo);
}

void a_door_waits_for_its_permit() {
  Simulation s(Policy::kZico, kPage, 200);
  uint32_t a = begin(s, 60), b = begin(s, 60);
  s.set_permits({{b, a, {true, 2, 0}}});
  CHECK(s.door(a) == Answer::kGo && s.door(b) == Answer::kWaits);
  CHECK(s.hold(a, 30) == Answer::kGo);
  s.tick();
  CHECK(s.look(b) == Answer::kWaits);
  CHECK(s.hold(a, 60) == Answer::kGo);
  s.tick();  // progress alone opens the door
  CHECK(s.look(b) == Answer::kGo);
  s.free_down_to(a, 0);
  uint32_t noted = s.governor().account(a).recorder.ordinal();
  CHECK(noted == 2);  // frees are no allocations
  CHECK(s.door(a) == Answer::kGo);
  CHECK(s.telemetry().slot(a, kIterations) == 1);
}

// Both claim 40 of 100, and want 60.
void a_wedge_is_resolved_in_virtual_time() {
  Simulation s(Policy::kZico, kPage, 100);
  uint32_t a = begin(s, 40), b = begin(s, 40);
  s.set_permits({{b, a, {true, 0, 0}}}), s.set_permits({{a, b, {true, 0, 0}}});
  CHECK(s.door(a) == Answer::kGo && s.door(b) == Answer::kGo);
  CHECK(s.hold(a, 40) == Answer::kGo && s.hold(b, 40) == Answer::kGo);
  CHECK(s.hold(a, 60) == Answer::kGo);  // the one overrun
  CHECK(s.hold(a, 70) == Answer::kWaits && s.hold(b, 60) == Answer::kWaits);
  for (uint64_t t = 1; t < 10 && !s.ready(); ++t) s.set_time(t * 10000000), s.tick();
  CHECK(s.ready());
  uint64_t copies = s.telemetry().slot(a, kCopiesOut) + s.telemetry().slot(b, kCopiesOut);
  CHECK(copies == 1);   // nobody had to be refused
  CHECK(!virtual_now);  // outside of its calls the thread's clock is the machine's
}

void a_job_that_can_never_fit_is_refused_with_figures() {
  Simulation s(Policy::kZico, kPage, 100);
  uint32_t a = begin(s, 300);
  CHECK(s.door(a) == Answer::kGo);
  CHECK(s.hold(a, 300) == Answer::kRefused);
  CHECK(s.refusal().find("the budget is 0.4 MiB") != std::string::npos);
}

// Past its peak an iteration claims little, but the next one will claim its peak again.
void a_set_up_leaves_room_for_the_next_iteration() {
  Simulation s(Policy::kZico, kPage, 100);
  uint32_t a = begin(s, 90), b = begin(s, 30);
  CHECK(s.door(a) == Answer::kGo);
  CHECK(s.hold(a, 45) == Answer::kGo && s.hold(a, 90) == Answer::kGo);
  CHECK(s.hold(a, 10) == Answer::kGo);
  CHECK(s.hold(b, 20) == Answer::kWaits);
  s.end_job(a);
  CHECK(s.look(b) == Answer::kGo);
}

// What an open iteration will give back is no reason to keep a newcomer out.
void a_set_up_counts_what_others_keep() {
  Simulation s(Policy::kZico, kPage, 130);
  uint32_t a = begin(s, 90), b = begin(s, 30);
  begin(s, 60);
  CHECK(s.door(a) == Answer::kGo);
  CHECK(s.hold(a, 45) == Answer::kGo && s.hold(a, 90) == Answer::kGo);
  CHECK(s.hold(b, 20) == Answer::kGo);
  CHECK(s.governor().account(b).recorder.ordinal() == 0);  // a set-up is not in the curve
}

// One iteration of `begin` as its curve has it, as far as its peak.
void rise(Simulation& s, uint32_t id, uint32_t peak) {
  CHECK(s.hold(id, peak / 2) == Answer::kGo && s.hold(id, peak) == Answer::kGo);
}

void all_by_forecast(Simulation& s, uint32_t jobs) {
  for (uint32_t a = 1; a <= jobs; ++a)
    for (uint32_t b = 1; b <= jobs; ++b)
      if (a != b) s.set_permits({{a, b, {true, 0, 0, true}}});
}

// Any two of them fit, at once; three only when one has come past its peak.
void a_door_looks_at_all_that_are_under_way() {
  Simulation s(Policy::kZico, kPage, 220);
  uint32_t a = begin(s, 100), b = begin(s, 100), c = begin(s, 100);
  all_by_forecast(s, 3);
  CHECK(s.door(a) == Answer::kGo && s.door(b) == Answer::kGo);
  CHECK(s.door(c) == Answer::kWaits);
  CHECK(s.hold(a, 50) == Answer::kGo);
  s.tick();
  CHECK(s.look(c) == Answer::kWaits);
  CHECK(s.hold(a, 100) == Answer::kGo);  // it ends when the two others come to their peaks
  s.tick();
  CHECK(s.look(c) == Answer::kGo);
}

void doors_wait_where_jobs_take_turns() {
  for (bool by_permit : {false, true}) {
    Simulation s(by_permit ? Policy::kZico : Policy::kTemporal, kPage, 300);
    uint32_t a = begin(s, 60), b = begin(s, 60);
    if (by_permit)
      s.set_permits({{a, b, {true, kNever, 0}}}), s.set_permits({{b, a, {true, kNever, 0}}});
    s.set_order(Order::kFifo, kSecond);
    CHECK(s.door(a) == Answer::kGo && s.door(b) == Answer::kWaits);
    s.set_time(kSecond / 2);
    CHECK(s.door(a) == Answer::kGo);  // its quantum is not over
    s.tick();
    CHECK(s.look(b) == Answer::kWaits);
    s.set_time(2 * kSecond);
    CHECK(s.door(a) == Answer::kWaits);
    CHECK(s.look(b) == Answer::kGo);
    s.set_time(2 * kSecond + kSecond / 2);
    CHECK(s.door(b) == Answer::kGo && s.look(a) == Answer::kWaits);
  }
}

// Jobs a and b take turns, c runs beside either: it ends no turn, and starts as often as it likes
// meanwhile, but once at most when nothing but c keeps b waiting.
void some_take_turns_beside_another() {
  Simulation s(Policy::kZico, kPage, 300);
  uint32_t a = begin(s, 60), b = begin(s, 60), c = begin(s, 60);
  s.set_permits({{a, b, {true, kNever, 0}}, {b, a, {true, kNever, 0}}});
  s.set_order(Order::kFifo, kSecond);
  CHECK(s.door(a) == Answer::kGo && s.door(c) == Answer::kGo && s.door(b) == Answer::kWaits);
  for (uint64_t part = 1; part < 4; ++part) {
    s.set_time(part * kSecond / 4);
    CHECK(s.door(c) == Answer::kGo && s.door(a) == Answer::kGo);
    s.tick();
    CHECK(s.look(b) == Answer::kWaits);
  }
  s.set_time(2 * kSecond);
  CHECK(s.door(a) == Answer::kWaits && s.look(b) == Answer::kGo);
  CHECK(s.most_passed(b) == 3);  // by job a, in its turn
  s.set_time(2 * kSecond + kSecond / 2);
  CHECK(s.door(c) == Answer::kGo && s.door(b) == Answer::kGo && s.look(a) == Answer::kWaits);
  s.end_job(b);
  CHECK(s.look(a) == Answer::kGo);
}

// Where memory is tight c starts as an iteration of a ends, and another one of a beside it: that is
// as if c had started a moment later.
void who_starts_between_two_of_a_turn_passes_nobody() {
  Simulation s(Policy::kZico, kPage, 102);
  uint32_t a = begin(s, 60), b = begin(s, 60), c = begin(s, 60);
  s.set_permits({{a, b, {true, kNever, 0}}, {b, a, {true, kNever, 0}}, {c, a, {true, kNever, 0}}});
  s.set_order(Order::kFifo, kSecond);
  CHECK(s.door(a) == Answer::kGo && s.door(b) == Answer::kWaits && s.door(c) == Answer::kWaits);
  s.set_time(kSecond / 4);
  CHECK(s.door(a) == Answer::kGo && s.look(c) == Answer::kGo);  // c first
  CHECK(s.look(b) == Answer::kWaits);
  s.set_permits({{c, a, {true, 0, 0}}});
  s.set_time(kSecond / 2);
  CHECK(s.door(c) == Answer::kGo && s.look(b) == Answer::kWaits);
  s.set_time(2 * kSecond);
  CHECK(s.door(a) == Answer::kWaits && s.look(b) == Answer::kGo);
}

// Job b can't start beside job c, which it takes no turns with: c passes it once, although there is
// a job, not under way, that it takes turns with.
void turns_with_one_let_nobody_else_pass() {
  Simulation s(Policy::kZico, kPage, 300);
  uint32_t a = begin(s, 60), b = begin(s, 60), c = begin(s, 60), d = begin(s, 10);
  s.set_permits({{a, b, {true, kNever, 0}}, {b, a, {true, kNever, 0}}, {b, c, {true, kNever, 0}}});
  CHECK(s.door(c) == Answer::kGo);
  CHECK(s.door(b) == Answer::kWaits);
  CHECK(s.door(d) == Answer::kGo && s.door(d) == Answer::kWaits);
  s.end_job(c);
  CHECK(s.look(b) == Answer::kGo && s.most_passed(b) == 1);
}

// Under the order fair whose turn it is goes on for its quantum, and is compared at its end.
void turns_last_for_a_quantum_under_fair_too() {
  Simulation s(Policy::kTemporal, kPage, 300);
  uint32_t a = begin(s, 60), b = begin(s, 60);
  s.set_order(Order::kFair, 10 * kSecond);
  CHECK(s.door(a) == Answer::kGo && s.door(b) == Answer::kWaits);
  uint64_t now = 0;
  for (; now < 9 * kSecond; now += kSecond) {
    s.set_time(now + kSecond);
    CHECK(s.door(a) == Answer::kGo);
    s.tick();
    CHECK(s.look(b) == Answer::kWaits);
  }
  s.set_time(now += 2 * kSecond);
  CHECK(s.door(a) == Answer::kWaits && s.look(b) == Answer::kGo);
  s.set_time(now += 5 * kSecond);
  CHECK(s.door(b) == Answer::kGo && s.look(a) == Answer::kWaits);
}

// Job b starts between iterations of a alone, but a beside one of b.
void only_who_takes_turns_has_a_quantum() {
  Simulation s(Policy::kZico, kPage, 300);
  uint32_t a = begin(s, 60), b = begin(s, 60);
  s.set_permits({{a, b, {true, 0, 0}}}), s.set_permits({{b, a, {true, kNever, 0}}});
  s.set_order(Order::kFifo, 10 * kSecond);
  CHECK(s.door(a) == Answer::kGo && s.door(b) == Answer::kWaits);
  s.set_time(kSecond / 2);
  CHECK(s.door(a) == Answer::kGo);
  CHECK(s.look(b) == Answer::kGo);
}

// Two peaks don't fit. A start is looked at when its moment has come, though nothing happens then.
void a_start_is_planned_for_its_moment() {
  Simulation s(Policy::kZico, kPage, 100);
  uint32_t a = begin(s, 60), b = begin(s, 60);
  s.set_permits({{b, a, {true, 0, 0, true}}});
  CHECK(s.next_look() == kNotPredicted);
  CHECK(s.door(a) == Answer::kGo && s.hold(a, 30) == Answer::kGo);
  CHECK(s.door(b) == Answer::kWaits);
  uint64_t planned = s.next_look();
  CHECK(planned >= kSecond && planned <= kSecond + kSecond / 8);
  s.set_time(kSecond - kSecond / 8);
  s.look_at_doors();
  CHECK(s.look(b) == Answer::kWaits && s.next_look() == planned);
  s.set_time(planned);
  s.look_at_doors();
  CHECK(s.look(b) == Answer::kGo);
  CHECK(s.next_look() == kNotPredicted);
}

// In the middle of a step, and a moment after somebody has looked.
void a_planned_look_is_a_close_one() {
  Simulation s(Policy::kZico, kPage, 362);
  uint32_t ids[2];
  for (uint32_t& id : ids)
    id = s.begin_job({160, 210, 160, 140}, {0, 200000000, 650000000, 870000000}, 0, kSecond);
  auto [a, b] = ids;
  s.set_permits({{b, a, {true, 0, 0, true}}});
  CHECK(s.door(a) == Answer::kGo);
  for (auto [ms, pages] : {std::pair{0, 160}, {200, 210}, {650, 160}}) {
    s.set_time(static_cast<uint64_t>(ms) * 1000000 + 1);
    CHECK(s.hold(a, static_cast<uint64_t>(pages)) == Answer::kGo);
  }
  CHECK(s.door(b) == Answer::kWaits);
  uint64_t planned = s.next_look();
  CHECK(planned >= 670000000 && planned <= 671100000);
  s.set_time(planned - 2000000);
  s.tick();
  CHECK(s.look(b) == Answer::kWaits && s.next_look() == planned);
  s.set_time(planned);
  s.look_at_doors();
  CHECK(s.look(b) == Answer::kGo);
}

// A permit may name an allocation and ask for the forecast too: the later of the two counts.
void a_start_waits_for_its_point_and_its_forecast() {
  struct Case {
    uint64_t room, made, planned_s;
    bool by_forecast = true;
  };
  for (auto [room, made, planned_s, by_forecast] :
       {Case{200, 2, 1}, {100, 1, 1}, {100, 3, 2}, {80, 2, 2}, {80, 2, 1, false}}) {
    Simulation s(Policy::kZico, kPage, room);
    uint32_t a = begin(s, 60), b = begin(s, 60);
    s.set_permits({{b, a, {true, made, 0, by_forecast}}});
    CHECK(s.door(a) == Answer::kGo && s.hold(a, 30) == Answer::kGo);
    CHECK(s.door(b) == Answer::kWaits);
    uint64_t planned = s.next_look(), expected = planned_s * kSecond;
    CHECK(planned >= expected && planned <= expected + kSecond / 8);
    s.set_time(kSecond - kSecond / 8);
    s.look_at_doors();
    CHECK(s.look(b) == Answer::kWaits);
    s.set_time(kSecond);
    CHECK(s.hold(a, 60) == Answer::kGo);
    s.tick();
    CHECK(s.look(b) == (planned_s == 1 ? Answer::kGo : Answer::kWaits));
    s.set_time(2 * kSecond);
    s.free_down_to(a, 29);
    CHECK(s.hold(a, 30) == Answer::kGo);
    s.tick();
    CHECK(s.look(b) == Answer::kGo && s.telemetry().slot(b, kPythonGrants) == 0);
  }
}

// Each of the two plans keeps the door shut, a part of one and a part of the other would not.
void permits_come_all_at_once() {
  Simulation s(Policy::kZico, kPage, 300);
  uint32_t a = begin(s, 60), b = begin(s, 60), c = begin(s, 60);
  s.set_permits({{b, a, {true, kNever, 0}}, {b, c, {true, 0, 0}}});
  CHECK(s.door(a) == Answer::kGo && s.door(c) == Answer::kGo);
  CHECK(s.door(b) == Answer::kWaits);
  s.set_permits({{b, a, {true, 0, 0}}, {b, c, {true, kNever, 0}}});
  CHECK(s.look(b) == Answer::kWaits);
  CHECK(s.telemetry().slot(b, kPythonGrants) == 0);
  s.set_permits({{b, c, {true, 0, 0}}});
  CHECK(s.look(b) == Answer::kGo);
  CHECK(s.telemetry().slot(b, kPythonGrants) == 1);
}

// The allocation that a permit names comes late: it is looked for again and again.
void a_start_is_planned_anew_where_others_are_late() {
  Simulation s(Policy::kZico, kPage, 200);
  uint32_t a = begin(s, 60), b = begin(s, 60);
  s.set_permits({{b, a, {true, 2, 0}}});
  CHECK(s.door(a) == Answer::kGo && s.hold(a, 30) == Answer::kGo);
  CHECK(s.door(b) == Answer::kWaits);
  uint64_t planned = s.next_look();
  CHECK(planned >= kSecond && planned <= kSecond + kSecond / 8);
  int looks = 0;
  for (uint64_t late = planned + kSecond; planned < late; ++looks) {
    s.set_time(planned);
    s.look_at_doors();
    CHECK(s.look(b) == Answer::kWaits);
    CHECK(s.next_look() > planned && s.next_look() <= planned + kSecond / 8);
    planned = s.next_look();
  }
  CHECK(looks >= 8 && looks <= 150);  // no more often than a tick comes, after a few
  CHECK(s.hold(a, 60) == Answer::kGo);
  s.set_time(planned);
  s.look_at_doors();
  CHECK(s.look(b) == Answer::kGo);
}

// A plan stays until another iteration is under way as well, or the job has to wait for an event.
void a_plan_is_for_those_under_way() {
  Simulation s(Policy::kZico, kPage, 100);
  uint32_t a = begin(s, 60), b = begin(s, 60), c = begin(s, 20);
  s.set_permits({{b, a, {true, 0, 0, true}}}), s.set_permits({{b, c, {true, 0, 0, true}}});
  CHECK(s.door(a) == Answer::kGo && s.hold(a, 30) == Answer::kGo);
  CHECK(s.door(b) == Answer::kWaits);
  uint64_t planned = s.next_look();
  s.set_time(kSecond / 2);
  s.tick();
  CHECK(s.next_look() == planned && planned < kSecond + kSecond / 8);
  CHECK(s.door(c) == Answer::kGo);
  s.tick();
  CHECK(s.next_look() >= 2 * kSecond);  // a's peak has no room for both
  s.set_permits({{b, a, {true, kNever, 0}}});
  CHECK(s.next_look() == kNotPredicted);
}

void the_lowest_rank_goes_first() {
  Simulation s(Policy::kTemporal, kPage, 300);
  uint32_t a = begin(s, 60), b = begin(s, 60), c = begin(s, 60);
  s.set_order(Order::kRanked, 10 * kSecond);
  s.set_rank(c, -5);
  CHECK(s.door(a) == Answer::kGo);
  CHECK(s.door(b) == Answer::kWaits && s.door(c) == Answer::kWaits);
  CHECK(s.door(a) == Answer::kWaits);  // a quantum is for equals
  CHECK(s.look(c) == Answer::kGo && s.look(b) == Answer::kWaits);
  CHECK(s.door(c) == Answer::kGo);  // and goes first again, although b asked before it
  s.end_job(c);
  CHECK(s.look(b) == Answer::kGo && s.look(a) == Answer::kWaits);
}

// A set-up waits until another job has been measured, which is behind in rank of one that has long
// been: were it to wait for that one's end, the set-up would, although it goes first as well.
void who_is_measured_goes_as_those_that_wait_for_it() {
  Simulation s(Policy::kTemporal, kPage, 300);
  uint32_t high = begin(s, 60), low = s.begin_job({}, {}, 0);
  s.set_order(Order::kRanked, 0);
  s.set_rank(high, -1);
  auto iterates = [&] {
    CHECK(s.hold(low, 20) == Answer::kGo);
    s.free_down_to(low, 5);
  };
  CHECK(s.door(low) == Answer::kGo && s.door(high) == Answer::kWaits);
  iterates();
  CHECK(s.door(low) == Answer::kWaits && s.look(high) == Answer::kGo);
  CHECK(s.door(high) == Answer::kGo);  // again before it
  uint32_t newcomer = s.begin_job({}, {}, 0);
  s.set_rank(newcomer, -1);
  CHECK(s.hold(newcomer, 3) == Answer::kWaits);
  CHECK(s.door(high) == Answer::kWaits && s.look(low) == Answer::kGo);
  iterates();
  CHECK(s.door(low) == Answer::kWaits);
  CHECK(s.look(newcomer) == Answer::kGo && s.look(high) == Answer::kGo);
}

// Likewise where another one has been granted less.
void who_is_measured_goes_first_where_the_order_is_fair() {
  Simulation s(Policy::kTemporal, kPage, 300);
  uint32_t known = begin(s, 60), unknown = s.begin_job({}, {}, 0);
  s.set_order(Order::kFair, 0);
  auto iterates = [&] {
    CHECK(s.hold(unknown, 20) == Answer::kGo);
    s.free_down_to(unknown, 5);
  };
  CHECK(s.door(unknown) == Answer::kGo && s.door(known) == Answer::kWaits);
  s.set_time(100 * kSecond);
  iterates();
  CHECK(s.door(unknown) == Answer::kWaits && s.look(known) == Answer::kGo);
  CHECK(s.door(known) == Answer::kGo);  // again before it
  uint32_t newcomer = s.begin_job({}, {}, 0);
  CHECK(s.hold(newcomer, 3) == Answer::kWaits);
  CHECK(s.door(known) == Answer::kWaits && s.look(unknown) == Answer::kGo);
  iterates();
  CHECK(s.door(unknown) == Answer::kWaits);
  CHECK(s.look(newcomer) == Answer::kGo && s.look(known) == Answer::kGo);
}

// Where it could start at once beside the other, who is behind in rank does not pass.
void nobody_passes_who_goes_first() {
  Simulation s(Policy::kZico, kPage, 150);
  uint32_t a = begin(s, 60), b = begin(s, 140), c = begin(s, 60);
  s.set_order(Order::kRanked, 0);
  s.set_rank(b, -1);
  s.set_permits({{b, a, {true, kNever, 0}}});
  CHECK(s.door(a) == Answer::kGo);
  rise(s, a, 60);
  CHECK(s.door(b) == Answer::kWaits && s.door(c) == Answer::kWaits);
  s.set_rank(b, 0);
  CHECK(s.look(c) == Answer::kGo);
}

// One holds two and a half times as much for as long: the other one has as many iterations more.
void the_order_is_fair_by_memory_and_time() {
  Simulation s(Policy::kTemporal, kPage, 300);
  uint32_t a = begin(s, 60), b = begin(s, 150);
  s.set_order(Order::kFair, 0);
  auto iterate = [&, now = uint64_t{0}](uint32_t id, uint64_t pages) mutable {
    rise(s, id, pages);
    s.set_time(now += kSecond);
    s.free_down_to(id, 0);
    return s.door(id);
  };
  CHECK(s.door(a) == Answer::kGo && s.door(b) == Answer::kWaits);
  CHECK(iterate(a, 60) == Answer::kWaits && s.look(b) == Answer::kGo);
  CHECK(iterate(b, 150) == Answer::kWaits && s.look(a) == Answer::kGo);
  for (int n = 0; n < 2; ++n) CHECK(iterate(a, 60) == Answer::kGo);
  CHECK(iterate(a, 60) == Answer::kWaits && s.look(b) == Answer::kGo);
}

// Who sets up for long has not been granted less than others: it was in no iteration.
void a_long_set_up_is_nothing_to_catch_up() {
  Simulation s(Policy::kTemporal, kPage, 300);
  uint32_t a = begin(s, 60), b = begin(s, 60);
  s.set_order(Order::kFair, 0);
  CHECK(s.door(a) == Answer::kGo);
  rise(s, a, 60);
  s.set_time(100 * kSecond);
  s.free_down_to(a, 0);
  CHECK(s.door(b) == Answer::kWaits);
  CHECK(s.door(a) == Answer::kWaits && s.look(b) == Answer::kGo);
  CHECK(s.governor().account(b).granted == s.governor().account(a).granted);
}

// Nor is it the least that others were granted.
void who_sets_up_is_not_the_least_granted() {
  Simulation s(Policy::kTemporal, kPage, 300);
  uint32_t a = begin(s, 60);
  s.set_order(Order::kFair, 0);
  begin(s, 60);
  CHECK(s.door(a) == Answer::kGo);
  rise(s, a, 60);
  s.set_time(100 * kSecond);
  s.free_down_to(a, 0);
  uint32_t c = begin(s, 60);
  CHECK(s.door(c) == Answer::kWaits);
  CHECK(s.door(a) == Answer::kWaits && s.look(c) == Answer::kGo);
  CHECK(s.governor().account(c).granted == s.governor().account(a).granted);
}

// Job a's iteration has ended, and it writes a checkpoint; what it does between two iterations
// otherwise is too short for another one's turn.
void nobodys_turn_waits_for_what_is_no_iteration(Policy policy, uint64_t budget, bool fits) {
  constexpr uint64_t kMs = 1000000;
  Simulation s(policy, kPage, budget);
  uint32_t a = begin(s, 60), b = begin(s, 60);
  s.set_permits({{b, a, {true, kNever, 0}}, {a, b, {true, kNever, 0}}});
  CHECK(s.door(a) == Answer::kGo);
  rise(s, a, 60);
  s.set_time(kSecond);
  CHECK(s.door(b) == Answer::kWaits);
  s.set_time(2 * kSecond);
  s.tick();
  CHECK(s.look(b) == Answer::kWaits);  // it computes for long
  s.mark(a);
  s.set_time(2 * kSecond + 40 * kMs);
  s.tick();
  CHECK(s.look(b) == Answer::kWaits);
  s.set_time(2 * kSecond + 60 * kMs);
  s.tick();
  CHECK(s.look(b) == (fits ? Answer::kGo : Answer::kWaits));
  s.free_down_to(a, 0);
  CHECK(s.look(b) == Answer::kGo);
  CHECK(s.door(a) == Answer::kWaits);  // now it is b's turn
}

// A job that exceeded its claim by more than headroom may become runs alone until it has kept to
// the new one for twenty iterations; who exceeds that too begins again.
void trust_comes_back_with_iterations_within_the_claim() {
  Simulation s(Policy::kZico, kPage, 200);
  uint32_t a = begin(s, 20);
  auto iterate = [&](uint64_t pages) {
    CHECK(s.door(a) == Answer::kGo);
    CHECK(s.hold(a, pages) == Answer::kGo);
    s.free_down_to(a, 0);
    s.mark(a);
  };
  const Account& account = s.governor().account(a);
  iterate(50);  // 30 more, of 25 that headroom may become
  iterate(50);
  CHECK(account.distrusted == 20);
  for (int n = 0; n < 5; ++n) iterate(50);
  CHECK(account.distrusted == 15);
  iterate(80);
  iterate(80);
  CHECK(account.distrusted == 20);
  for (int n = 0; n < 20; ++n) iterate(80);
  CHECK(account.trusted());
}

// What is kept back is for overruns of those who are there.
void headroom_goes_with_the_job_that_needed_it() {
  Simulation s(Policy::kZico, kPage, 200);
  uint32_t a = begin(s, 20), b = begin(s, 20);
  for (auto [id, more] : {std::pair<uint32_t, uint64_t>{a, 15}, {b, 5}}) {
    CHECK(s.door(id) == Answer::kGo && s.hold(id, 20 + more) == Answer::kGo);
    s.free_down_to(id, 0);
    CHECK(s.door(id) == Answer::kGo);
  }
  CHECK(s.governor().pool_state().headroom == 15);
  s.end_job(a);
  CHECK(s.governor().pool_state().headroom == 5);
  s.end_job(b);
  CHECK(s.governor().pool_state().headroom == 2);
}

// Job a asks for no more than it claims, and must wait since b has taken more; it is not a that is
// put down for it.
void the_last_reserve_is_no_overrun_of_who_needed_it() {
  Simulation s(Policy::kZico, kPage, 100);
  uint32_t a = begin(s, 60), b = begin(s, 38);
  s.set_permits({{b, a, {true, 0, 0}}}), s.set_permits({{a, b, {true, 0, 0}}});
  CHECK(s.door(a) == Answer::kGo && s.door(b) == Answer::kGo);
  CHECK(s.hold(a, 30) == Answer::kGo && s.hold(b, 19) == Answer::kGo);
  CHECK(s.hold(b, 38) == Answer::kGo && s.hold(b, 40) == Answer::kGo);
  CHECK(s.hold(a, 60) == Answer::kWaits && s.hold(b, 71) == Answer::kWaits);
  for (uint64_t t = 1; t < 10 && !s.ready(); ++t) s.set_time(t * 100000000), s.tick();
  CHECK(s.look(a) == Answer::kGo);
  CHECK(s.telemetry().slot(a, kOverruns) == 0 && s.telemetry().slot(b, kOverruns) == 1);
}

void a_newcomer_starts_at_the_least_that_another_was_granted() {
  Simulation s(Policy::kTemporal, kPage, 300);
  uint32_t a = begin(s, 60);
  s.set_order(Order::kFair, 0);
  CHECK(s.door(a) == Answer::kGo);
  rise(s, a, 60);
  s.set_time(100 * kSecond);
  s.free_down_to(a, 0);
  uint32_t b = begin(s, 60);
  CHECK(s.door(b) == Answer::kWaits);
  CHECK(s.door(a) == Answer::kWaits && s.look(b) == Answer::kGo);
  CHECK(s.governor().account(b).granted == s.governor().account(a).granted);
  CHECK(s.governor().account(b).granted > 5900 && s.governor().account(b).granted < 6100);
}

void a_wait_tells_what_it_was_for() {
  Simulation s(Policy::kZico, kPage, 200);
  uint32_t a = begin(s, 60), b = begin(s, 60);
  s.set_permits({{b, a, {true, 2, 0}}});
  CHECK(s.door(a) == Answer::kGo && s.door(b) == Answer::kWaits);
  s.set_time(kSecond);
  rise(s, a, 60);
  s.set_permits({{b, a, {true, kNever, 0}}});
  s.set_time(4 * kSecond);
  s.tick();
  s.set_permits({{b, a, {false, 0, 0}}});
  CHECK(s.look(b) == Answer::kGo);
  auto waited = [&](Why why) {
    return s.telemetry().slot(b, static_cast<Slot>(uint32_t{kWaitedNs} + why - 1)) / kSecond;
  };
  CHECK(waited(kShift) == 0 && waited(kTurn) == 3);
  CHECK(s.telemetry().slot(b, kDoorWaitNs) == 4 * kSecond - 1);
}

// Nobody has moved, but there is more room: what did not fit is looked at again.
void a_door_sees_a_larger_budget() {
  Simulation s(Policy::kZico, kPage, 150);
  uint32_t a = begin(s, 100), b = begin(s, 100);
  all_by_forecast(s, 2);
  CHECK(s.door(a) == Answer::kGo && s.door(b) == Answer::kWaits);
  CHECK(s.hold(a, 50) == Answer::kGo);
  s.set_time(100 * kSecond);  // late for its next allocation
  s.tick();
  CHECK(s.look(b) == Answer::kWaits);
  CHECK_EMPTY(s.set_budget(300));
  s.tick();
  CHECK(s.look(b) == Answer::kGo);
}

// A job that holds next to nothing beyond its residue is not first for ever.
void fairness_counts_time_where_there_is_no_memory() {
  Simulation s(Policy::kTemporal, kPage, 160);
  uint32_t a = begin(s, 60), b = begin(s, 2);
  s.set_order(Order::kFair, 0);
  CHECK(s.door(b) == Answer::kGo && s.door(a) == Answer::kWaits);
  s.set_time(kSecond);
  CHECK(s.door(b) == Answer::kWaits && s.look(a) == Answer::kGo);
  rise(s, a, 60);
  s.set_time(2 * kSecond);
  s.free_down_to(a, 0);
  CHECK(s.door(a) == Answer::kWaits && s.look(b) == Answer::kGo);
  int passed = 0;
  for (; passed < 100 && s.look(a) == Answer::kWaits; ++passed) {
    s.set_time(kSecond * static_cast<uint64_t>(passed + 3));
    s.door(b);
  }
  CHECK(passed >= 6 && passed <= 8);  // 60 pages for a second, a sixteenth of 160 for each of these
}

void many_leave_nothing_behind() {
  for (int i = 0; i < 3000; ++i) {
    Simulation s(Policy::kTemporal, kPage, 64);
    for (int n = 0; n < 20; ++n) begin(s, 10);
  }
}

}  // namespace

int main() {
  memory_that_is_freed_lets_a_waiter_go_on();
  a_set_up_does_not_wait_for_ever_for_a_profile();
  a_door_waits_for_its_permit();
  a_wedge_is_resolved_in_virtual_time();
  a_job_that_can_never_fit_is_refused_with_figures();
  a_set_up_leaves_room_for_the_next_iteration();
  a_set_up_counts_what_others_keep();
  a_door_looks_at_all_that_are_under_way();
  doors_wait_where_jobs_take_turns();
  some_take_turns_beside_another();
  who_starts_between_two_of_a_turn_passes_nobody();
  turns_with_one_let_nobody_else_pass();
  only_who_takes_turns_has_a_quantum();
  turns_last_for_a_quantum_under_fair_too();
  a_start_is_planned_for_its_moment();
  a_planned_look_is_a_close_one();
  a_start_waits_for_its_point_and_its_forecast();
  permits_come_all_at_once();
  a_start_is_planned_anew_where_others_are_late();
  a_plan_is_for_those_under_way();
  the_lowest_rank_goes_first();
  who_is_measured_goes_as_those_that_wait_for_it();
  who_is_measured_goes_first_where_the_order_is_fair();
  nobody_passes_who_goes_first();
  the_order_is_fair_by_memory_and_time();
  a_long_set_up_is_nothing_to_catch_up();
  who_sets_up_is_not_the_least_granted();
  for (Policy policy : {Policy::kTemporal, Policy::kZico}) {
    nobodys_turn_waits_for_what_is_no_iteration(policy, 300, true);
    nobodys_turn_waits_for_what_is_no_iteration(policy, 100, false);
  }
  trust_comes_back_with_iterations_within_the_claim();
  headroom_goes_with_the_job_that_needed_it();
  the_last_reserve_is_no_overrun_of_who_needed_it();
  a_newcomer_starts_at_the_least_that_another_was_granted();
  a_wait_tells_what_it_was_for();
  a_door_sees_a_larger_budget();
  fairness_counts_time_where_there_is_no_memory();
  many_leave_nothing_behind();
  puts("simulation: ok");
}
