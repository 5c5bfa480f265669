// Leases by segment: what an iteration is promised nobody else gets, it does not wait for that, and
// a promise ends where it would be in the way.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <random>
#include <utility>

#include "../src/segments.h"
#include "../src/simulation.h"
#include "check.h"

using namespace gpushare;
using Answer = Simulation::Answer;

namespace {

constexpr uint64_t kPage = 4096, kSecond = 1000000000;

uint32_t begin(Simulation& s, std::vector<uint32_t> held, uint64_t residue = 0) {
  std::vector<uint64_t> times;
  for (size_t i = 0; i < held.size(); ++i) times.push_back(i * kSecond);
  uint32_t id = s.begin_job(std::move(held), std::move(times), residue);
  CHECK(id > 0);
  return id;
}

void both_may_start_at_once(Simulation& s, uint32_t a, uint32_t b) {
  s.set_permits({{a, b, {true, 0, 0}}});
  s.set_permits({{b, a, {true, 0, 0}}});
}

uint64_t lease(Simulation& s, uint32_t id) { return s.governor().account(id).lease; }

// By counting: a segment ends where so much has moved since its beginning.
void a_segment_needs_the_most_that_is_still_to_come_in_it() {
  std::mt19937_64 random(7);
  for (int n = 0; n < 2000; ++n) {
    std::vector<uint32_t> held(1 + random() % 40);
    std::vector<uint64_t> times(held.size());
    for (uint32_t& h : held) h = static_cast<uint32_t>(random() % 30);
    uint64_t split = 1 + random() % 60;
    Curve curve;
    curve.set(held, times, 0, 0);
    Segments segments;
    segments.cut(curve, split);
    size_t first = 0, end = 0;
    for (size_t i = 0; i < held.size(); ++i) {
      if (i == end) {
        uint64_t moved = 0;
        first = i;
        for (end = i + 1; end < held.size(); ++end) {
          moved +=
              held[end] > held[end - 1] ? held[end] - held[end - 1] : held[end - 1] - held[end];
          if (moved >= split) break;
        }
      }
      CHECK(first <= i && i < end);
      uint64_t most = *std::max_element(&held[i], &held[0] + end);
      CHECK(segments.need(static_cast<uint32_t>(i)) == most);
    }
    CHECK(segments.need(static_cast<uint32_t>(held.size())) == 0);
    segments.cut(curve, Segments::kNone);
    CHECK(segments.need(0) == 0);
  }
}

// Of 100 pages, two more are headroom, a is promised 60 with its start, so b's second step does not
// fit, however little a holds by then.
std::pair<uint32_t, uint32_t> one_waits_for_a_promise(Simulation& s, uint32_t beside = 0) {
  s.set_split(51);  // of a: the first two steps; of b: the first one
  uint32_t a = begin(s, {10, 60, 5}), b = begin(s, {20, 75, 20});
  for (uint32_t job : {a, b})
    if (beside) both_may_start_at_once(s, job, beside);
  both_may_start_at_once(s, a, b);
  CHECK(s.door(a) == Answer::kGo && lease(s, a) == 60);
  CHECK(s.hold(a, 10) == Answer::kGo && lease(s, a) == 60);
  CHECK(s.door(b) == Answer::kGo && lease(s, b) == 20);
  CHECK(s.hold(b, 20) == Answer::kGo);
  CHECK(s.hold(b, 75) == Answer::kWaits);
  return {a, b};
}

// Who was promised them takes all of them without a wait.
void nobody_gets_what_another_was_promised() {
  Simulation s(Policy::kZico, kPage, 102);
  auto [a, b] = one_waits_for_a_promise(s);
  CHECK(s.hold(a, 60) == Answer::kGo);
  CHECK(s.look(b) == Answer::kWaits);
  CHECK(s.hold(a, 5) == Answer::kGo);  // past its rise nothing is promised beyond what is left
  CHECK(s.ready() == uint64_t{1} << b);
  CHECK(s.look(b) == Answer::kGo && s.governor().account(b).held == 75);
  CHECK_EMPTY(s.check());
}

// Not who holds most.
void who_was_promised_most_is_named() {
  Simulation s(Policy::kZico, kPage, 122);
  FILE* file = tmpfile();
  CHECK(file);
  s.governor().decisions().start(fileno(file));
  uint32_t c = begin(s, {20, 20, 20}, 20);
  CHECK(s.door(c) == Answer::kGo && s.hold(c, 20) == Answer::kGo);
  auto [a, b] = one_waits_for_a_promise(s, c);
  s.set_time(kSecond / 100);
  for (uint32_t pages : {60u, 5u}) CHECK(s.hold(a, pages) == Answer::kGo);
  CHECK(s.look(b) == Answer::kGo);
  s.governor().flush_logs();
  Decision told = {};
  CHECK(pread(fileno(file), &told, sizeof told, 0) == sizeof told);
  CHECK(told.account == b && told.why == kClaims && told.by == a);
  fclose(file);
}

// Leases that are no longer given are no longer kept.
void without_a_split_nothing_is_promised() {
  Simulation s(Policy::kZico, kPage, 102);
  auto [a, b] = one_waits_for_a_promise(s);
  s.set_split(Segments::kNone);
  CHECK(lease(s, a) == 0 && s.look(b) == Answer::kGo);
}

// Without leases b would get its pages, since a holds ten; and a would wait in mid-iteration.
void without_leases_it_is_page_by_page() {
  Simulation s(Policy::kZico, kPage, 102);
  uint32_t a = begin(s, {10, 60, 5}), b = begin(s, {20, 75, 20});
  both_may_start_at_once(s, a, b);
  CHECK(s.door(a) == Answer::kGo && s.hold(a, 10) == Answer::kGo && lease(s, a) == 0);
  CHECK(s.door(b) == Answer::kGo && s.hold(b, 20) == Answer::kGo);
  CHECK(s.hold(b, 75) == Answer::kGo && lease(s, b) == 0);
  CHECK(s.hold(a, 60) == Answer::kWaits);
}

// A start waits for no promise either.
void a_start_whose_segment_is_not_safe_comes_without() {
  Simulation s(Policy::kZico, kPage, 102);
  s.set_split(1000);
  uint32_t a = begin(s, {70, 70, 5}), b = begin(s, {10, 40, 10});
  both_may_start_at_once(s, a, b);
  CHECK(s.door(a) == Answer::kGo && s.hold(a, 70) == Answer::kGo);
  CHECK(s.door(b) == Answer::kGo && lease(s, b) == 0);
  CHECK(s.hold(b, 10) == Answer::kGo && s.hold(b, 40) == Answer::kWaits);
  CHECK(s.hold(a, 70) == Answer::kGo && s.hold(a, 5) == Answer::kGo);
  CHECK(s.look(b) == Answer::kGo);
}

// Where all of a segment would not be safe its first pages come without it.
void what_is_safe_by_itself_does_not_wait_for_a_segment() {
  Simulation s(Policy::kZico, kPage, 102);
  s.set_split(45);
  uint32_t a = begin(s, {10, 20, 60, 60, 40, 5}), b = begin(s, {50, 50, 5});
  both_may_start_at_once(s, a, b);
  CHECK(s.door(a) == Answer::kGo && s.hold(a, 10) == Answer::kGo && s.hold(a, 20) == Answer::kGo);
  CHECK(s.door(b) == Answer::kGo && lease(s, b) == 50);
  CHECK(s.hold(a, 45) == Answer::kGo && lease(s, a) == 20);
  CHECK(s.hold(a, 60) == Answer::kWaits);
  CHECK(s.hold(b, 50) == Answer::kGo);
}

// Headroom that grows, as an overrun ends, leaves too little for all promises; each of the two has
// still enough to go on by itself.
void promises_that_cannot_all_be_kept_are_off() {
  Simulation s(Policy::kZico, kPage, 102);
  s.set_split(1000);
  uint32_t a = begin(s, {10, 20, 30, 40, 50, 60, 5}), b = begin(s, {10, 15, 20, 30, 35, 40, 5});
  uint32_t c = begin(s, {1, 0, 0});
  both_may_start_at_once(s, a, b), both_may_start_at_once(s, a, c), both_may_start_at_once(s, b, c);
  CHECK(s.door(c) == Answer::kGo && s.hold(c, 11) == Answer::kGo);  // by ten
  CHECK(s.telemetry().slot(c, kOverruns) == 1);
  s.free_down_to(c, 0);
  CHECK(s.door(a) == Answer::kGo && s.hold(a, 10) == Answer::kGo && lease(s, a) == 60);
  CHECK(s.door(b) == Answer::kGo && s.hold(b, 10) == Answer::kGo && lease(s, b) == 40);
  uint32_t d = begin(s, {5, 5, 5});
  both_may_start_at_once(s, a, d), both_may_start_at_once(s, b, d);
  s.set_permits({{d, c, {true, kNever, 0}}});
  CHECK(s.door(d) == Answer::kWaits);
  s.set_permits({{c, a, {true, kNever, 0}}});
  CHECK(s.door(c) == Answer::kWaits);
  CHECK(s.telemetry().header(kHeadroom) == 10 * kPage);
  CHECK(s.look(d) == Answer::kGo);
  s.end_job(d);
  CHECK(s.hold(a, 20) == Answer::kGo && s.hold(b, 15) == Answer::kGo);
  CHECK(lease(s, a) == 60 && lease(s, b) == 0);  // who asks next may be promised what is left
  for (uint32_t pages : {30, 40, 50, 60, 5}) CHECK(s.hold(a, pages) == Answer::kGo);
  for (uint32_t pages : {20, 30, 35, 40, 5}) CHECK(s.hold(b, pages) == Answer::kGo);
  CHECK(s.telemetry().slot(a, kOverruns) + s.telemetry().slot(b, kOverruns) == 0);
  CHECK_EMPTY(s.check());
}

// An overrun does not wait for what was only promised.
void an_overrun_ends_promises() {
  Simulation s(Policy::kZico, kPage, 102);
  s.set_split(1000);
  uint32_t a = begin(s, {10, 60, 5}), b = begin(s, {20, 30, 5});
  both_may_start_at_once(s, a, b);
  CHECK(s.door(a) == Answer::kGo && s.hold(a, 10) == Answer::kGo && lease(s, a) == 60);
  CHECK(s.door(b) == Answer::kGo && s.hold(b, 20) == Answer::kGo && lease(s, b) == 30);
  CHECK(s.hold(b, 35) == Answer::kGo && s.telemetry().slot(b, kOverruns) == 1);
  CHECK(s.hold(b, 45) == Answer::kGo && lease(s, a) == 0);
  CHECK(s.telemetry().slot(a, kOverruns) == 0);
}

// c keeps at its door what it was not to keep. Were a to use its promise all the same, neither it
// nor b could end.
void nobody_goes_on_by_a_promise_that_is_no_longer_safe() {
  Simulation s(Policy::kZico, kPage, 102);
  s.set_split(51);
  uint32_t a = begin(s, {10, 60, 80, 5}), b = begin(s, {20, 72, 5}), c = begin(s, {15, 15, 15});
  both_may_start_at_once(s, a, b), both_may_start_at_once(s, a, c), both_may_start_at_once(s, b, c);
  CHECK(s.door(c) == Answer::kGo && s.hold(c, 15) == Answer::kGo);
  CHECK(s.door(a) == Answer::kGo && s.hold(a, 10) == Answer::kGo && lease(s, a) == 60);
  CHECK(s.door(b) == Answer::kGo && s.hold(b, 20) == Answer::kGo);
  CHECK(s.door(c) != Answer::kRefused);
  CHECK(s.hold(a, 60) == Answer::kWaits && lease(s, a) == 0);
  CHECK(s.hold(b, 72) == Answer::kGo);
  s.free_down_to(b, 0);
  CHECK(s.look(a) == Answer::kGo && s.hold(a, 80) == Answer::kGo);
  CHECK(s.telemetry().slot(c, kCopiesOut) == 0);
}

// Who is promised something may idle: for so long nobody waits.
void a_promise_that_is_not_used_ends() {
  Simulation s(Policy::kZico, kPage, 102);
  auto [a, b] = one_waits_for_a_promise(s);
  s.set_time(kSecond / 20), s.tick();
  CHECK(s.look(b) == Answer::kWaits);
  s.set_time(kSecond / 5), s.tick();
  CHECK(s.look(b) == Answer::kGo && s.governor().account(b).held == 75);
}

// Nothing more is promised to one while another waits for pages.
void who_waits_comes_before_promises() {
  Simulation s(Policy::kZico, kPage, 102);
  s.set_split(35);
  uint32_t a = begin(s, {70, 70, 5}), b = begin(s, {5, 40, 5}), c = begin(s, {5, 10, 15, 5});
  both_may_start_at_once(s, a, b), both_may_start_at_once(s, a, c), both_may_start_at_once(s, b, c);
  CHECK(s.door(a) == Answer::kGo && s.hold(a, 70) == Answer::kGo);
  CHECK(s.door(b) == Answer::kGo && s.hold(b, 5) == Answer::kGo);
  CHECK(s.door(c) == Answer::kGo);
  s.set_split(36);  // takes the first promises back
  CHECK(s.hold(b, 40) == Answer::kWaits);
  CHECK(s.hold(c, 5) == Answer::kGo && lease(s, c) == 0);
}

// Nor to one that has to be measured, or has set itself a limit.
void who_can_have_no_promise_gets_none() {
  Simulation s(Policy::kZico, kPage, 102);
  s.set_split(1000);
  uint32_t a = s.begin_job({}, {}, 0);
  CHECK(s.door(a) == Answer::kGo);
  for (uint32_t pages = 1; pages < 30; ++pages)
    CHECK(s.hold(a, pages) == Answer::kGo && lease(s, a) == 0);
  CHECK(s.telemetry().slot(a, kLeases) == 0);
  s.end_job(a);
  uint32_t b = begin(s, {10, 60, 5});
  s.governor().set_limit(b, 50);
  CHECK(s.door(b) == Answer::kGo && lease(s, b) == 50 && s.telemetry().slot(b, kLeases) == 1);
  s.governor().cancel(b);
  CHECK(lease(s, b) == 0 && s.hold(b, 10) == Answer::kGo && lease(s, b) == 0);
  CHECK(s.door(b) == Answer::kGo && lease(s, b) == 0);
  uint32_t c = begin(s, {10, 10, 10}, 10);
  for (int n = 0; n < 3; ++n)
    CHECK(s.door(c) == Answer::kGo && s.hold(c, 10) == Answer::kGo);  // which it keeps
  CHECK(s.telemetry().slot(c, kLeases) == 1);
}

// A smaller budget waits for what is held, not for what is promised.
void a_cut_does_not_wait_for_promises() {
  Simulation s(Policy::kZico, kPage, 110);
  s.set_split(1000);
  uint32_t a = begin(s, {10, 20, 50, 5}), b = begin(s, {10, 20, 50, 5});
  both_may_start_at_once(s, a, b);
  CHECK(s.door(a) == Answer::kGo && s.hold(a, 10) == Answer::kGo);
  CHECK(s.door(b) == Answer::kGo && s.hold(b, 10) == Answer::kGo);
  CHECK(lease(s, a) == 50 && lease(s, b) == 50);
  CHECK_EMPTY(s.set_budget(80));
  CHECK(s.governor().pool_state().budget == 80);
}

// Until it has come nothing more is promised.
void nothing_is_promised_before_a_cut() {
  Simulation s(Policy::kZico, kPage, 110);
  s.set_split(1000);
  uint32_t a = begin(s, {10, 60, 70, 5}), b = begin(s, {10, 30, 5});
  both_may_start_at_once(s, a, b);
  CHECK(s.door(a) == Answer::kGo && s.hold(a, 10) == Answer::kGo && s.hold(a, 60) == Answer::kGo);
  CHECK(s.door(b) == Answer::kGo && s.hold(b, 10) == Answer::kGo && lease(s, b) == 30);
  CHECK_EMPTY(s.set_budget(80));  // neither could end within it
  CHECK(s.governor().pool_state().budget == 110);
  CHECK(s.hold(b, 15) == Answer::kGo && lease(s, b) == 0);
  CHECK(s.hold(a, 70) == Answer::kGo && lease(s, a) == 0 && s.hold(a, 5) == Answer::kGo);
  CHECK(s.governor().pool_state().budget == 80);
}

// An iteration that is found to be of a small kind is promised no more than that needs, whether it
// asks for anything or not.
void a_small_kind_keeps_no_large_promise() {
  Simulation s(Policy::kZico, kPage, 122);
  std::vector<uint32_t> large(40, 100), small(40, 6);
  large[0] = large[1] = 3;
  uint32_t a = begin(s, large), b = begin(s, {50, 50, 5});
  both_may_start_at_once(s, a, b);
  auto iterate = [&](const std::vector<uint32_t>& held, uint32_t n) {
    CHECK(s.door(a) == Answer::kGo);
    for (uint32_t i = 0; i < n; ++i) CHECK(s.hold(a, held[i]) == Answer::kGo);
  };
  for (int n = 0; n < 5; ++n) {
    iterate(large, 40), s.free_down_to(a, 0);
    iterate(small, 40), s.free_down_to(a, 0);
  }
  iterate(large, 40), s.free_down_to(a, 0);
  s.set_split(100000);
  iterate(small, 10);
  CHECK(s.door(b) == Answer::kGo && lease(s, a) == 100);
  CHECK(s.hold(b, 50) == Answer::kWaits);
  for (uint32_t i = 10; i < 30; ++i) CHECK(s.hold(a, small[i]) == Answer::kGo);
  s.tick();
  CHECK(lease(s, a) == 6 && s.look(b) == Answer::kGo);
}

// The first pages of a segment bring all of it; in an iteration that is alone too.
void a_segment_is_asked_for_at_once(bool alone) {
  Simulation s(Policy::kZico, kPage, 102);
  s.set_split(45);
  uint32_t a = begin(s, {10, 20, 60, 40, 40, 5}), b = begin(s, {5, 75, 5});
  both_may_start_at_once(s, a, b);
  CHECK(s.door(a) == Answer::kGo && lease(s, a) == 20);
  if (!alone) CHECK(s.door(b) == Answer::kGo);
  CHECK(s.hold(a, 10) == Answer::kGo && s.hold(a, 20) == Answer::kGo && lease(s, a) == 20);
  CHECK(s.hold(a, 21) == Answer::kGo && lease(s, a) == 60);
  if (alone) CHECK(s.door(b) == Answer::kGo);
  CHECK(s.hold(b, 5) == Answer::kGo);
  CHECK(s.hold(b, 75) == Answer::kWaits);
}

void progress_alone_ends_a_promise() {
  Simulation s(Policy::kZico, kPage, 102);
  s.set_split(1000);
  uint32_t a = begin(s, {60, 5, 5, 5}), b = begin(s, {20, 80, 20});
  both_may_start_at_once(s, a, b);
  CHECK(s.door(a) == Answer::kGo && s.door(b) == Answer::kGo);
  CHECK(s.hold(b, 20) == Answer::kGo && s.hold(b, 80) == Answer::kWaits);
  CHECK(s.hold(a, 5) == Answer::kGo && s.look(b) == Answer::kWaits);
  s.tick();
  CHECK(s.look(b) == Answer::kGo);
}

// A job that is alone may try what its curve says can't fit.
void more_than_there_is_is_not_promised() {
  Simulation s(Policy::kZico, kPage, 102);
  s.set_split(1000);
  uint32_t a = begin(s, {10, 300, 10});
  CHECK(s.door(a) == Answer::kGo && lease(s, a) == 0);
  CHECK(s.hold(a, 10) == Answer::kGo && lease(s, a) == 0);
  CHECK(s.hold(a, 101) == Answer::kGo);
}

// What a no longer needs b is promised, at its door or with its next pages.
void what_a_segment_no_longer_needs_is_free_again(bool at_a_door) {
  Simulation s(Policy::kZico, kPage, 102);
  s.set_split(1000);
  uint32_t a = begin(s, {60, 5, 5, 5}), b = begin(s, {20, 80, 20});
  both_may_start_at_once(s, a, b);
  if (!at_a_door) {
    s.set_split(55);  // of b: the first step, then the others
    CHECK(s.door(b) == Answer::kGo && s.hold(b, 20) == Answer::kGo);
  }
  CHECK(s.door(a) == Answer::kGo && lease(s, a) == 60);
  CHECK(s.hold(a, 5) == Answer::kGo);  // this time it needs less than its curve says
  if (at_a_door) CHECK(s.door(b) == Answer::kGo && lease(s, b) == 80);
  if (at_a_door) CHECK(s.hold(b, 20) == Answer::kGo);
  CHECK(s.hold(b, 80) == Answer::kGo && lease(s, a) == 5);
  s.end_job(a);
  CHECK(lease(s, a) == 0);
}

void an_iteration_that_ends_keeps_no_promise() {
  Simulation s(Policy::kZico, kPage, 102);
  s.set_split(1000);
  uint32_t a = begin(s, {10, 60, 5}), b = begin(s, {80, 80, 5});
  both_may_start_at_once(s, a, b);
  CHECK(s.door(a) == Answer::kGo && s.hold(a, 10) == Answer::kGo && lease(s, a) == 60);
  CHECK(s.door(b) == Answer::kGo && s.hold(b, 80) == Answer::kWaits);
  s.free_down_to(a, 0);
  CHECK(s.look(b) == Answer::kWaits);
  CHECK(s.door(a) != Answer::kRefused);  // it ends at once
  CHECK(s.look(b) == Answer::kGo);
}

// Bytes beyond a claim are no part of a promise, and nobody hangs.
void who_overruns_asks_page_by_page() {
  Simulation s(Policy::kZico, kPage, 102);
  s.set_split(1000);
  uint32_t a = begin(s, {10, 30, 5}), b = begin(s, {10, 30, 5});
  both_may_start_at_once(s, a, b);
  CHECK(s.door(a) == Answer::kGo && s.door(b) == Answer::kGo);
  CHECK(s.hold(a, 10) == Answer::kGo && s.hold(a, 40) == Answer::kGo);
  CHECK(lease(s, a) <= 30 && s.telemetry().slot(a, kOverruns) == 1);
  CHECK(s.hold(b, 10) == Answer::kGo && s.hold(b, 30) == Answer::kGo);
  CHECK_EMPTY(s.check());
}

}  // namespace

int main() {
  a_segment_needs_the_most_that_is_still_to_come_in_it();
  nobody_gets_what_another_was_promised();
  who_was_promised_most_is_named();
  without_a_split_nothing_is_promised();
  without_leases_it_is_page_by_page();
  a_start_whose_segment_is_not_safe_comes_without();
  a_segment_is_asked_for_at_once(false);
  a_segment_is_asked_for_at_once(true);
  what_is_safe_by_itself_does_not_wait_for_a_segment();
  promises_that_cannot_all_be_kept_are_off();
  an_overrun_ends_promises();
  nobody_goes_on_by_a_promise_that_is_no_longer_safe();
  a_promise_that_is_not_used_ends();
  who_waits_comes_before_promises();
  who_can_have_no_promise_gets_none();
  a_cut_does_not_wait_for_promises();
  nothing_is_promised_before_a_cut();
  a_small_kind_keeps_no_large_promise();
  progress_alone_ends_a_promise();
  more_than_there_is_is_not_promised();
  what_a_segment_no_longer_needs_is_free_again(false);
  what_a_segment_no_longer_needs_is_free_again(true);
  an_iteration_that_ends_keeps_no_promise();
  who_overruns_asks_page_by_page();
  puts("leases: ok");
}
