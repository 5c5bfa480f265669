// Who goes first is not kept waiting for long by those that go after it: they leave for it, and
// who must leave is the one that goes last. Under a virtual clock.
#include "../src/simulation.h"
#include "check.h"

using namespace gpushare;
using Answer = Simulation::Answer;

namespace {

constexpr uint64_t kPage = 4096, kMs = 1000000, kSecond = 1000 * kMs;

class Scene : public Simulation {
 public:
  explicit Scene(Order order = Order::kFifo, uint64_t budget = 100)
      : Simulation(Policy::kZico, kPage, budget) {
    set_order(order, kSecond / 2);
  }
  uint32_t known(uint32_t peak, uint64_t residue) {
    return begin_job({peak / 2, peak}, {0, 50 * kMs}, residue, 100 * kMs);
  }
  uint32_t unknown() { return begin_job({}, {}, 0); }
  void pass(uint64_t ns) {
    for (uint64_t end = time() + ns; time() < end;) {
      set_time(time() + 10 * kMs);
      tick();
      CHECK_EMPTY(check());
    }
  }
  // A tenth of a second, if the door opens.
  bool iterate(uint32_t id, uint64_t peak, uint64_t residue) {
    if (door(id) != Answer::kGo) return false;
    CHECK(hold(id, peak) == Answer::kGo);
    pass(100 * kMs);
    free_down_to(id, residue);
    return true;
  }
  // How long it did, and waited at its door, until the other one could go on.
  double iterates_until(uint32_t other, uint32_t id, uint64_t peak, uint64_t residue) {
    uint64_t begun = time();
    bool waits = false;
    while (!goes_on(other) && time() < begun + 30 * kSecond) {
      if (waits && goes_on(id)) {
        CHECK(look(id) == Answer::kGo && hold(id, peak) == Answer::kGo);
        pass(100 * kMs);
        free_down_to(id, residue);
        waits = false;
      } else if (waits) {
        pass(10 * kMs);
      } else {
        waits = !iterate(id, peak, residue);
      }
    }
    return static_cast<double>(time() - begun) / kSecond;
  }
  bool goes_on(uint32_t id) const { return ready() >> id & 1; }
  uint64_t waited(uint32_t id, Why why) {
    return telemetry().slot(id, static_cast<Slot>(uint32_t{kWaitedNs} + why - 1));
  }
  uint64_t left(uint32_t id) { return telemetry().slot(id, kCopiesOut); }
};

// Job a claims 70 and keeps 10; b, which goes after it, has come to keep `keeps` in its first
// iteration.
struct Grown {
  Scene s;
  uint32_t a, b;
  explicit Grown(Order order = Order::kFifo, uint64_t keeps = 35) : s(order) {
    a = s.unknown();
    CHECK(s.hold(a, 10) == Answer::kGo);
    CHECK(s.iterate(a, 70, 10) && s.iterate(a, 70, 10));
    CHECK(s.door(a) == Answer::kGo && s.hold(a, 70) == Answer::kGo);
    b = s.unknown();
    CHECK(s.hold(b, 5) == Answer::kGo && s.door(b) == Answer::kWaits);
    s.free_down_to(a, 10);
    CHECK(s.door(a) == Answer::kWaits && s.look(b) == Answer::kGo);
    CHECK(s.hold(b, 40) == Answer::kGo);
    s.pass(100 * kMs);
    s.free_down_to(b, keeps);
  }
};

void who_has_come_to_keep_more_leaves() {
  Grown g;
  double took = g.s.iterates_until(g.a, g.b, 40, 35);
  CHECK(took > 9 && took < 11 && g.s.left(g.b) == 1 && g.s.left(g.a) == 0);
  CHECK(g.s.look(g.a) == Answer::kGo);
  g.s.end_job(g.a);
  g.s.pass(100 * kMs);
  CHECK(g.s.look(g.b) == Answer::kGo);
}

void under_fair_nobody_does() {
  Grown g(Order::kFair);
  CHECK(g.s.iterates_until(g.a, g.b, 40, 35) >= 30 && g.s.left(g.b) == 0);
}

// The one that waits is the one that goes last.
void who_goes_first_does_not_leave() {
  Scene s;
  uint32_t a = s.unknown(), b = s.known(70, 10);
  CHECK(s.hold(a, 5) == Answer::kGo && s.hold(b, 10) == Answer::kGo);
  CHECK(s.iterate(a, 40, 35) && s.iterate(a, 40, 35) && s.door(b) == Answer::kWaits);
  CHECK(s.iterates_until(b, a, 40, 35) >= 30 && s.left(a) == 0);
}

// Another thread of job b computes, which may use what it holds: its door is shut for a moment
// once in ten seconds.
void who_cannot_leave_goes_on() {
  Grown g;
  g.s.governor().thread_enters(g.b);
  CHECK(g.s.iterates_until(g.a, g.b, 40, 35) >= 30 && g.s.left(g.b) == 0);
  uint64_t waited = g.s.waited(g.b, kBehind);
  CHECK(waited >= 200 * kMs && waited <= 500 * kMs);
}

// Each of b and c alone would not help; c comes to its door later.
void two_leave_where_both_are_needed() {
  Scene s;
  uint32_t a = s.known(85, 10), b = s.known(25, 20), c = s.known(25, 20);
  for (auto [id, holds] : {std::pair{a, 10}, {b, 5}, {c, 5}})
    CHECK(s.hold(id, holds) == Answer::kGo);
  for (uint32_t id : {b, c}) {
    CHECK(s.door(id) == Answer::kGo && s.hold(id, 25) == Answer::kGo);
    s.free_down_to(id, 20);
  }
  CHECK(s.door(a) == Answer::kWaits);
  for (int n = 0; n < 98; ++n) {
    s.pass(100 * kMs);
    CHECK(s.door(b) == Answer::kGo && s.door(c) == Answer::kGo && !s.goes_on(a));
  }
  s.pass(300 * kMs);
  CHECK(s.door(b) == Answer::kWaits);
  s.pass(kSecond);
  CHECK(!s.goes_on(a) && s.left(b) + s.left(c) == 0);  // job c is in its iteration
  CHECK(s.door(c) == Answer::kWaits);
  s.pass(100 * kMs);
  CHECK(s.goes_on(a) && s.left(b) == 1 && s.left(c) == 1);
}

// The same for a set-up: who has left first is not back before the second one has.
void two_leave_for_a_set_up() {
  Scene s;
  uint32_t a = s.unknown(), b = s.known(25, 20), c = s.known(25, 20);
  CHECK(s.hold(a, 21) == Answer::kGo);
  for (uint32_t id : {b, c}) {
    CHECK(s.hold(id, 5) == Answer::kGo && s.door(id) == Answer::kGo);
    CHECK(s.hold(id, 25) == Answer::kGo);
    s.free_down_to(id, 20);
  }
  CHECK(s.hold(a, 80) == Answer::kWaits);
  for (int n = 0; n < 98; ++n) {
    s.pass(100 * kMs);
    CHECK(s.door(b) == Answer::kGo && s.door(c) == Answer::kGo);
  }
  s.pass(300 * kMs);
  CHECK(s.door(b) == Answer::kWaits && s.door(c) == Answer::kWaits);
  s.pass(200 * kMs);
  CHECK(s.goes_on(a) && s.left(b) == 1 && s.left(c) == 1);
}

// Two of three wait in their set-ups, each with what the other one lacks.
void a_set_up_leaves_for_one_before_it() {
  Scene s;
  uint32_t a = s.known(20, 8), b = s.unknown(), c = s.unknown();
  CHECK(s.hold(a, 8) == Answer::kGo && s.hold(b, 50) == Answer::kGo);
  CHECK(s.hold(c, 28) == Answer::kGo);
  CHECK(s.hold(b, 60) == Answer::kWaits && s.hold(c, 32) == Answer::kWaits);
  double took = s.iterates_until(b, a, 20, 8);
  CHECK(took > 9 && took < 11 && s.left(c) == 1 && s.left(b) == 0);
  CHECK(s.look(b) == Answer::kGo);
}

// All set-ups wait and fill the budget, the first one asked last.
void of_set_ups_the_last_one_leaves() {
  Scene s;
  uint32_t a = s.unknown(), b = s.unknown(), c = s.unknown();
  CHECK(s.hold(b, 50) == Answer::kGo && s.hold(c, 28) == Answer::kGo);
  CHECK(s.hold(a, 18) == Answer::kGo);
  CHECK(s.hold(b, 56) == Answer::kWaits && s.hold(c, 33) == Answer::kWaits);
  CHECK(s.hold(a, 23) == Answer::kWaits);
  s.pass(200 * kMs);
  CHECK(s.left(c) == 1 && s.left(a) + s.left(b) == 0 && s.goes_on(a) && s.goes_on(b));
  s.pass(kSecond);
  CHECK(s.waited(c, kReturning) == 0);  // not over
  CHECK(s.look(a) == Answer::kGo && s.look(b) == Answer::kGo);
  s.end_job(b);
  s.pass(100 * kMs);
  CHECK(s.look(c) == Answer::kGo);
  CHECK(s.waited(c, kReturning) >= kSecond);
}

// Both at their doors, without room beside each other; job c has the higher rank.
void who_goes_first_by_its_rank_stays() {
  Scene s(Order::kRanked);
  uint32_t b = s.known(70, 10), c = s.known(70, 10);
  s.set_rank(b, 10), s.set_rank(c, -10);
  CHECK(s.door(b) == Answer::kGo && s.hold(b, 50) == Answer::kGo);
  s.pass(10 * kMs);
  CHECK(s.door(c) == Answer::kGo && s.hold(b, 70) == Answer::kGo);
  s.free_down_to(b, 40);
  CHECK(s.door(b) == Answer::kWaits && s.hold(c, 50) == Answer::kGo);
  s.free_down_to(c, 40);
  CHECK(s.door(c) == Answer::kWaits);
  s.pass(kSecond);
  CHECK(s.left(b) == 1 && s.left(c) == 0 && s.goes_on(c));
}

}  // namespace

int main() {
  who_has_come_to_keep_more_leaves();
  under_fair_nobody_does();
  who_goes_first_does_not_leave();
  who_cannot_leave_goes_on();
  two_leave_where_both_are_needed();
  two_leave_for_a_set_up();
  a_set_up_leaves_for_one_before_it();
  of_set_ups_the_last_one_leaves();
  who_goes_first_by_its_rank_stays();
  puts("passing: ok");
}
