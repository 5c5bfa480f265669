// What a wait is forecast to take when it begins, by what the curves say of those under way.
#include <cstdio>

#include "../src/simulation.h"
#include "check.h"

using namespace gpushare;
using Answer = Simulation::Answer;

namespace {

constexpr uint64_t kPage = 4096, kSecond = 1000000000;

// Holds half its peak at 0 s, all of it at 1 s and half of it at 2 s; ends at 3 s.
uint32_t begin(Simulation& s, uint32_t peak) {
  std::vector<uint32_t> held = {peak / 2, peak, peak / 2};
  return s.begin_job(std::move(held), {0, kSecond, 2 * kSecond}, 0, 3 * kSecond);
}

struct Told {
  FILE* file = tmpfile();
  explicit Told(Simulation& s) { s.governor().decisions().start(fileno(file)); }
  ~Told() { fclose(file); }
  Decision last(Simulation& s) {
    s.governor().flush_logs();
    Decision told = {};
    CHECK(fseek(file, -static_cast<long>(sizeof told), SEEK_END) == 0);
    CHECK(fread(&told, sizeof told, 1, file) == 1);
    return told;
  }
};

void may_start_together(Simulation& s, uint32_t a, uint32_t b) {
  s.set_permits({{a, b, {true, 0, 0}}, {b, a, {true, 0, 0}}});
}

void both_have_begun(Simulation& s, uint32_t a, uint32_t b) {
  may_start_together(s, a, b);
  CHECK(s.door(a) == Answer::kGo && s.door(b) == Answer::kGo);
  CHECK(s.hold(a, 30) == Answer::kGo && s.hold(b, 30) == Answer::kGo);
}

bool about(uint64_t ns, uint64_t expected) {
  return ns + kSecond / 100 > expected && ns < expected + kSecond / 100;
}

// a has come to its peak, and by its curve gives half of it back a second later.
void a_wait_for_memory_lasts_until_the_step_is_safe() {
  Simulation s(Policy::kZico, kPage, 100);
  Told told(s);
  uint32_t a = begin(s, 60), b = begin(s, 60);
  both_have_begun(s, a, b);
  CHECK(s.hold(a, 60) == Answer::kGo && s.hold(b, 60) == Answer::kWaits);
  s.set_time(kSecond * 5 / 4);
  CHECK(s.hold(a, 30) == Answer::kGo && s.look(b) == Answer::kGo);
  Decision d = told.last(s);
  CHECK(d.why == kClaims && d.account == b && d.bytes == 30 * kPage);
  CHECK(about(d.predicted_ns, kSecond) && about(d.waited_ns, kSecond * 5 / 4));
  CHECK(s.telemetry().slot(b, kForecastWaits) == 1);
  CHECK(about(s.telemetry().slot(b, kForecastErrorNs), kSecond / 4));
}

// After a second there is room for b's 50 pages, but a will want 15 more and b 50, and 9 are left.
void room_for_the_step_alone_ends_no_wait() {
  Simulation s(Policy::kZico, kPage, 104);
  Told told(s);
  std::vector<uint32_t> falls_and_rises = {60, 45, 60, 10};
  uint32_t a = s.begin_job(falls_and_rises, {0, kSecond, 2 * kSecond, 3 * kSecond}, 0, 4 * kSecond);
  uint32_t b = begin(s, 100);
  may_start_together(s, a, b);
  CHECK(s.door(a) == Answer::kGo && s.door(b) == Answer::kGo);
  CHECK(s.hold(a, 60) == Answer::kGo && s.hold(b, 50) == Answer::kWaits);
  s.end_job(a);
  CHECK(s.look(b) == Answer::kGo);
  CHECK(about(told.last(s).predicted_ns, 3 * kSecond));
}

// c stands still as long as it waits, whatever its curve says, and a is at its end by then.
void who_waits_too_does_not_go_on_meanwhile() {
  Simulation s(Policy::kZico, kPage, 150);
  Told told(s);
  uint32_t a = begin(s, 80), b = begin(s, 60), c = begin(s, 60);
  for (uint32_t i : {a, b, c})
    for (uint32_t j : {a, b, c})
      if (i != j) s.set_permits({{i, j, {true, 0, 0}}});
  for (uint32_t i : {a, b, c}) CHECK(s.door(i) == Answer::kGo);
  CHECK(s.hold(a, 40) == Answer::kGo && s.hold(b, 30) == Answer::kGo);
  CHECK(s.hold(c, 30) == Answer::kGo && s.hold(a, 80) == Answer::kGo);
  CHECK(s.hold(c, 60) == Answer::kWaits && s.hold(b, 60) == Answer::kWaits);
  s.end_job(a);
  CHECK(s.look(c) == Answer::kGo && s.look(b) == Answer::kGo);
  CHECK(about(told.last(s).predicted_ns, kSecond));
}

// Job a goes on until its turn of five seconds is over, and ends the iteration that it is in then;
// c comes after b, which has a turn of its own.
void a_wait_for_a_turn_lasts_for_the_iterations_of_one() {
  Simulation s(Policy::kTemporal, kPage, 200);
  s.set_order(Order::kFifo, 5 * kSecond);
  Told told(s);
  uint32_t a = begin(s, 60), b = begin(s, 60), c = begin(s, 60);
  CHECK(s.door(a) == Answer::kGo);
  CHECK(s.hold(a, 30) == Answer::kGo);
  s.set_time(kSecond);
  CHECK(s.hold(a, 60) == Answer::kGo);
  CHECK(s.door(b) == Answer::kWaits && s.door(c) == Answer::kWaits);
  s.set_time(3 * kSecond);
  s.free_down_to(a, 0);
  CHECK(s.door(a) == Answer::kGo);
  s.set_time(6 * kSecond);
  CHECK(s.door(a) == Answer::kWaits);
  CHECK(s.look(b) == Answer::kGo);
  Decision d = told.last(s);
  CHECK(d.account == b && d.why == kTurn);
  CHECK(about(d.predicted_ns, 5 * kSecond) && about(d.waited_ns, 5 * kSecond));
  s.end_job(b);
  CHECK(s.look(c) == Answer::kGo);
  CHECK(about(told.last(s).predicted_ns, 11 * kSecond));
}

void nothing_is_forecast_of_a_set_up() {
  Simulation s(Policy::kZico, kPage, 100);
  Told told(s);
  uint32_t a = begin(s, 90), b = begin(s, 30);
  CHECK(s.door(a) == Answer::kGo);
  CHECK(s.hold(a, 45) == Answer::kGo && s.hold(a, 90) == Answer::kGo);
  CHECK(s.hold(b, 20) == Answer::kWaits);
  s.end_job(a);
  CHECK(s.look(b) == Answer::kGo);
  CHECK(told.last(s).predicted_ns == kNotPredicted);
  CHECK(s.telemetry().slot(b, kForecastWaits) == 0);
}

// Also where nobody asked for a record of each wait.
void a_planned_start_has_a_forecast() {
  Simulation s(Policy::kZico, kPage, 100);
  uint32_t a = begin(s, 60), b = begin(s, 60);
  s.set_permits({{b, a, {true, 0, 0, true}}, {a, b, {true, 0, 0, true}}});
  CHECK(s.door(a) == Answer::kGo && s.door(b) == Answer::kWaits);
  s.set_time(2 * kSecond);
  s.end_job(a);
  CHECK(s.look(b) == Answer::kGo);
  CHECK(s.telemetry().slot(b, kForecastWaits) == 1);
  CHECK(about(s.telemetry().slot(b, kForecastErrorNs), kSecond));  // it was to begin after one
}

}  // namespace

int main() {
  a_wait_for_memory_lasts_until_the_step_is_safe();
  room_for_the_step_alone_ends_no_wait();
  who_waits_too_does_not_go_on_meanwhile();
  a_wait_for_a_turn_lasts_for_the_iterations_of_one();
  nothing_is_forecast_of_a_set_up();
  a_planned_start_has_a_forecast();
  puts("forecast waits: ok");
}
