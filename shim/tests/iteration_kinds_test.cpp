// Kinds of iterations: told apart by their curves, recognised by their first allocations, forecast
// from what followed before.
#include "../src/iteration_kinds.h"

#include <algorithm>
#include <cmath>
#include <random>

#include "check.h"

using namespace gpushare;

namespace {

constexpr uint32_t kAllocations = 60, kPeak = 100;

// Rises to its peak and falls again; `bytes` of each allocation.
struct Shape {
  uint32_t peak;
  uint64_t bytes;
  uint32_t allocations = kAllocations;
};

uint32_t held_at(const Shape& s, uint32_t i) {
  return s.peak * 2 * std::min(i, s.allocations - i) / s.allocations;
}

class Job {
 public:
  Job() { CHECK(recorder_.reserve()); }
  void begin(uint64_t now_ns = 1) {
    recorder_.restart(now_ns);
    kinds.begin();
  }
  void allocate(const Shape& s, uint32_t first, uint32_t end) {
    for (uint32_t i = first; i < end; ++i) recorder_.note(held_at(s, i), s.bytes);
    kinds.recognise(recorder_);
  }
  void end(uint64_t duration_ns = 1000, bool batch = false) {
    kinds.end(recorder_, 0, {.duration_ns = duration_ns}, batch);
  }
  void run(const Shape& s, IterationKinds::Times times) {
    begin();
    allocate(s, 0, s.allocations);
    kinds.end(recorder_, 0, times);
  }
  double work(bool open) const { return kinds.work(recorder_, open, {}); }
  void iterate(const Shape& s) {
    begin();
    allocate(s, 0, s.allocations);
    end();
  }
  uint64_t claim() const { return kinds.claim(recorder_.ordinal(), kAll); }

  static constexpr uint64_t kAll = 1000;  // what the curve of all would claim
  IterationKinds kinds;

 private:
  Recorder recorder_;
};

constexpr Shape kLarge{kPeak, 4096}, kSmall{kPeak / 4, 512};

void alike_iterations_are_of_one_kind() {
  Job job;
  std::mt19937 random(1);
  for (int n = 0; n < 50; ++n)
    job.iterate({kPeak + static_cast<uint32_t>(random() % 4), 4096 + random() % 9});
  CHECK(job.kinds.count() == 1 && job.kinds.kind(0).seen == 50);
  CHECK(job.kinds.kind(0).followed_by[0] == 49);
}

void others_are_of_others() {
  Job job;
  for (int n = 0; n < 4; ++n) job.iterate(kLarge), job.iterate(kSmall);
  job.iterate({kPeak, 4096, kAllocations * 2});  // as high, and twice as long
  CHECK(job.kinds.count() == 3);
  CHECK(job.kinds.kind(0).followed_by[1] == 4 && job.kinds.kind(1).followed_by[0] == 3);
}

// Batches that are evaluated hold the same all the time, however many there are.
void what_holds_the_same_is_told_apart_by_its_length() {
  Job job;
  constexpr Shape long_one{0, 64, 40}, short_one{0, 64, 33};
  for (int n = 0; n < 20; ++n) job.iterate(long_one), job.iterate(short_one);
  CHECK(job.kinds.count() == 2);
  CHECK(job.kinds.kind(0).seen == 20 && job.kinds.kind(1).seen == 20);
}

// However many there are of them, those of what comes later are told apart.
void batches_take_a_few_kinds_only() {
  Job job;
  job.iterate(kLarge);
  for (uint32_t n = 0; n < 12; ++n) {
    job.begin();
    job.allocate({10, 64, 40 + 10 * n}, 0, 40 + 10 * n);
    job.end(1000, true);
  }
  CHECK(job.kinds.count() == 1 + IterationKinds::kMostBatches);
  job.iterate({2 * kPeak, 4096});
  CHECK(job.kinds.count() == 2 + IterationKinds::kMostBatches);
  CHECK(job.kinds.kind(0).seen == 1 && job.kinds.kind(0).curve.claim(0) == kPeak);
}

// As a saved profile tells them.
void kinds_of_an_earlier_run_are_known() {
  Job before;
  for (int n = 0; n < 9; ++n)
    before.iterate(kLarge), before.iterate(kSmall), before.iterate(kSmall);
  Job job;
  for (uint32_t i = 0; i < before.kinds.count(); ++i) {
    const IterationKinds::Kind& kind = before.kinds.kind(i);
    job.kinds.add(kind.curve, kind.seen, kind.followed_by);
  }
  CHECK(job.kinds.count() == 2 && job.kinds.kind(1).seen == 18);
  CHECK(job.kinds.likely() == &job.kinds.kind(1));  // was seen most often
  job.begin();
  job.allocate(kLarge, 0, kAllocations);
  CHECK(job.claim() == Job::kAll);  // which one it is can't be told yet
  job.end();
  CHECK(job.kinds.count() == 2 && job.kinds.kind(0).seen == 10);
  CHECK(job.kinds.likely() == &job.kinds.kind(1));  // followed the large one
}

// Not what comes once in an epoch, however large it is; and what was usual stays so.
void sizes_are_those_of_kinds_that_come_often() {
  Job job;
  constexpr Shape validation{2 * kPeak, 512, 2 * kAllocations};
  auto is = [&](const Shape& s) {
    IterationKinds::Extent usual = job.kinds.usual();
    return usual.pages == s.peak && usual.allocations == s.allocations;
  };
  for (int epoch = 0; epoch < 8; ++epoch) {
    for (int n = 0; n < 20; ++n) {
      job.iterate(kSmall);
      CHECK(is(kSmall));
    }
    job.iterate(validation);
  }
  CHECK(job.kinds.kind(1).seen == 8 && is(kSmall));
  for (int n = 0; n < 9; ++n) {
    job.begin();
    job.allocate({3 * kPeak, 256, 3 * kAllocations}, 0, 3 * kAllocations);
    job.end(1000, true);
    CHECK(is(kSmall));
  }
  for (int n = 0; n < 3; ++n) {
    job.iterate(kLarge);
    CHECK(is(kSmall));
  }
  job.iterate(kLarge);
  CHECK(is({kPeak, 4096}));
  for (int n = 0; n < 100; ++n) job.iterate(kSmall);
  CHECK(is({kPeak, 4096}));
}

// Of an earlier run it is told how often each kind came.
void kinds_that_came_often_before_are_usual_at_once() {
  Job before, job;
  constexpr Shape validation{2 * kPeak, 512, 2 * kAllocations};
  for (int n = 0; n < 20; ++n) before.iterate(kSmall), before.iterate(kLarge);
  before.iterate(validation);
  for (uint32_t i = 0; i < before.kinds.count(); ++i)
    job.kinds.add(before.kinds.kind(i).curve, before.kinds.kind(i).seen, {});
  CHECK(job.kinds.count() == 3);
  CHECK(job.kinds.usual().pages == kPeak && job.kinds.usual().allocations == kAllocations);
}

// A curve as a profile file has it: a few steps, each with the most in it.
Curve in_steps(const IterationKinds::Kind& kind) {
  const Forecast& f = kind.forecast;
  std::vector<uint32_t> held(kind.curve.length()), begins;
  std::vector<uint64_t> time_ns(kind.curve.length());
  for (uint32_t s = 0; s < f.length(); ++s) {
    begins.push_back(f.ordinal(s));
    uint32_t end = s + 1 < f.length() ? f.ordinal(s + 1) : kind.curve.length();
    for (uint32_t i = f.ordinal(s); i < end; ++i) held[i] = f.held(s), time_ns[i] = f.time(s);
  }
  Curve curve;
  curve.set(std::move(held), std::move(time_ns), kind.curve.residue(), kind.curve.duration_ns());
  curve.came_in_steps(std::move(begins));
  return curve;
}

// Teeth that are higher than kinds may differ, and more of them than there are steps: evaluation
// of many batches inside of an iteration.
void teeth(Job& job) {
  job.begin();
  job.allocate(kLarge, 0, kAllocations);
  for (uint32_t i = 0; i < 4000; ++i) job.allocate({i % 5 * 10, 512, 2}, 1, 2);
  job.end();
}

void a_curve_in_steps_is_known_again() {
  Job before;
  for (int n = 0; n < 3; ++n) teeth(before), before.iterate(kSmall);
  CHECK(before.kinds.count() == 2);
  Job job;
  for (uint32_t i = 0; i < 2; ++i)
    job.kinds.add(in_steps(before.kinds.kind(i)), before.kinds.kind(i).seen, {});
  for (int n = 0; n < 3; ++n) teeth(job), job.iterate(kSmall);
  CHECK(job.kinds.count() == 2);
  for (uint32_t i = 0; i < 2; ++i)
    CHECK(job.kinds.kind(i).seen == 6 && job.kinds.kind(i).seen_before == 3);
}

// Those given are of a job alone; beside others it is slower from the first iteration on.
void times_that_were_given_are_replaced_at_once() {
  Job before, job;
  before.iterate(kLarge);
  before.iterate(kSmall);
  for (uint32_t i = 0; i < 2; ++i) job.kinds.add(in_steps(before.kinds.kind(i)), 1, {});
  job.begin();
  job.allocate(kLarge, 0, kAllocations);
  job.end(2000);
  CHECK(job.kinds.kind(0).curve.duration_ns() == 2000);
  CHECK(job.kinds.kind(1).curve.duration_ns() == 1000);
  job.begin();
  job.allocate(kLarge, 0, kAllocations);
  job.end(3000);
  CHECK(job.kinds.kind(0).curve.duration_ns() == 2250);
}

void more_kinds_than_there_can_be_are_left_out() {
  Job job;
  Curve curve;
  curve.set({1}, {0}, 0, 1000);
  for (uint32_t i = 0; i < IterationKinds::kMost + 3; ++i) job.kinds.add(curve, i, {});
  CHECK(job.kinds.count() == IterationKinds::kMost);
}

void what_comes_next_is_what_came_next() {
  Job job;
  for (int n = 0; n < 5; ++n) job.iterate(kLarge), job.iterate(kSmall), job.iterate(kSmall);
  CHECK(job.kinds.last() == 1);
  for (int n = 0; n < 20; ++n) job.iterate(kSmall);
  job.iterate(kLarge);
  job.begin();
  CHECK(job.kinds.likely() == &job.kinds.kind(1));  // although a large one was the last
  job.allocate(kLarge, 0, Recorder::kFirst);
  CHECK(job.kinds.likely() == &job.kinds.kind(0));  // now it is seen what it is
}

void the_first_allocations_tell_the_claim() {
  Job job;
  for (int n = 0; n < 2; ++n) job.iterate(kLarge), job.iterate(kSmall);
  job.begin();
  job.allocate(kSmall, 0, Recorder::kFirst);
  CHECK(job.claim() == Job::kAll);  // not seen often yet
  job.allocate(kSmall, Recorder::kFirst, kAllocations);
  job.end();
  job.begin();
  CHECK(job.claim() == Job::kAll);  // at the door nothing is known for sure
  job.allocate(kSmall, 0, Recorder::kFirst - 1);
  CHECK(job.claim() == Job::kAll);
  job.allocate(kSmall, Recorder::kFirst - 1, Recorder::kFirst);
  CHECK(job.claim() == kSmall.peak);
}

void what_begins_alike_claims_the_most_of_both() {
  Job job;
  Shape longer{kPeak * 3, kLarge.bytes, kAllocations};
  auto both = [&](uint32_t end) {
    job.begin();
    job.allocate(kLarge, 0, Recorder::kFirst);
    job.allocate(longer, Recorder::kFirst, end);
  };
  for (int n = 0; n < 4; ++n) {
    both(kAllocations);
    job.end();
    job.iterate(kLarge);
  }
  CHECK(job.kinds.count() == 2);
  both(Recorder::kFirst + 1);
  CHECK(job.claim() == longer.peak);
}

void an_unknown_beginning_claims_everything() {
  Job job;
  for (int n = 0; n < 5; ++n) job.iterate(kLarge), job.iterate(kSmall);
  job.begin();
  job.allocate({kPeak / 4, 777}, 0, Recorder::kFirst);
  CHECK(job.claim() == Job::kAll);
}

void after_a_mistake_nothing_is_believed_for_a_while() {
  Job job;
  for (int n = 0; n < 5; ++n) job.iterate(kLarge), job.iterate(kSmall);
  job.begin();
  job.allocate(kSmall, 0, Recorder::kFirst);
  CHECK(job.claim() == kSmall.peak);
  job.kinds.mistaken();
  CHECK(job.claim() == Job::kAll);
  job.end();
  int doubted = 0;
  for (; doubted < 100; ++doubted) {
    job.begin();
    job.allocate(kSmall, 0, kAllocations - 1);
    if (job.claim() != Job::kAll) break;
    job.end();
  }
  CHECK(doubted == 19);  // the mistaken one was the first of twenty
}

// A quarter of the time is a quarter of the work; and half of an iteration is half of its kind's.
void work_is_counted_by_kind() {
  Job job;
  for (int n = 0; n < 4; ++n) {
    job.iterate(kLarge);
    job.begin();
    job.allocate(kSmall, 0, kAllocations);
    job.end(250);
  }
  CHECK(std::abs(job.work(false) - 5) < 1e-9);
  job.begin();
  job.allocate(kLarge, 0, kAllocations / 2);
  CHECK(std::abs(job.work(true) - 5.5) < 1e-9);
  job.allocate(kLarge, kAllocations / 2, 2 * kAllocations);  // longer than any before
  CHECK(std::abs(job.work(true) - 6) < 1e-9);
}

// Other jobs that make everything slower do not make more of it: what the profiled kind takes by
// now is one iteration.
void work_is_the_same_however_slow_it_is() {
  Job job;
  auto iterate = [&](const Shape& s, uint64_t ns) {
    job.begin();
    job.allocate(s, 0, s.allocations);
    job.end(ns);
  };
  Shape longer{kPeak, 4096, kAllocations * 13 / 10};
  iterate(kLarge, 1000);
  iterate(longer, 1300);
  for (int n = 0; n < 100; ++n) iterate(kLarge, 2000);
  CHECK(std::abs(job.work(false) - 102.3) < 1e-6);
}

constexpr uint64_t kMs = 1000000;

bool near(double a, double b) { return std::abs(a - b) < 1e-6 * b; }

// Epochs of 20 iterations of 2 ms, and workers that start in 120 ms; from the third epoch on others
// make all of it twice as slow.
void an_epochs_workers_are_work_beside_its_iterations() {
  Job job;
  for (uint64_t epoch = 0; epoch < 6; ++epoch) {
    uint64_t slower = epoch < 3 ? 1 : 2;
    for (int n = 0; n < 19; ++n) job.run(kLarge, {.duration_ns = 2 * kMs * slower});
    double before = job.work(false);
    job.run(kLarge, {.duration_ns = 122 * kMs * slower, .started_process = true});
    double work = job.work(false) - before;
    CHECK(std::abs(work - 61) < 0.5 && job.kinds.last_time_ns() == 0);
    CHECK(job.kinds.last_work() == static_cast<uint64_t>(work * 1e6));
  }
  CHECK(job.kinds.count() == 1);
  CHECK(job.kinds.kind(0).curve.duration_ns() / kMs == 3);  // it comes close to 4 from below
}

void who_starts_processes_all_the_time_does_so_in_iterations() {
  Job job;
  for (int n = 0; n < 20; ++n) {
    job.run(kLarge, {.duration_ns = 20 * kMs});
    job.run(kLarge, {.duration_ns = 60 * kMs, .started_process = true});
  }
  CHECK(near(job.work(false), 40));
}

void a_checkpoint_is_work_behind_an_iteration() {
  Job job;
  for (int n = 0; n < 9; ++n) job.run(kLarge, {.duration_ns = 10 * kMs, .after_ns = 6 * kMs});
  job.run(kLarge, {.duration_ns = 104 * kMs, .after_ns = 95 * kMs});
  CHECK(near(job.work(false), 10 + 95 / 9.75));
  CHECK(job.kinds.last_time_ns() == 9 * kMs);
  job.run(kSmall, {.duration_ns = 50 * kMs, .after_ns = 45 * kMs});  // how long it is is not known
  CHECK(job.kinds.last_time_ns() == 50 * kMs);
}

// What is not far longer than an iteration is a part of it, and what is short is a hiccup.
void what_is_short_behind_an_iteration_is_a_part_of_it() {
  Job job;
  for (int n = 0; n < 9; ++n) job.run(kLarge, {.duration_ns = 100 * kMs, .after_ns = 95 * kMs});
  job.run(kLarge, {.duration_ns = 190 * kMs, .after_ns = 180 * kMs});
  CHECK(near(job.work(false), 10));
  Job quick;
  for (int n = 0; n < 9; ++n) quick.run(kLarge, {.duration_ns = kMs, .after_ns = kMs / 2});
  quick.run(kLarge, {.duration_ns = 10 * kMs, .after_ns = 9 * kMs});
  CHECK(near(quick.work(false), 10));
}

// Sequences that grow: the profiled kind comes no more, and those that follow are measured by what
// came before them. Each is 1.5 times the one before, and from the third on another job makes all
// twice as slow.
void a_profiled_kind_that_is_gone_hands_its_measure_on() {
  Job job;
  double alone = 1000, work = 0;
  for (uint32_t k = 0; k < 5; ++k, alone *= 1.5)
    for (int n = 0; n < 200; ++n) {
      job.begin();
      Shape s{kPeak, 4096, kAllocations + 20 * k};
      job.allocate(s, 0, s.allocations);
      bool slow = k > 2 || (k == 2 && n >= 100);
      job.end(static_cast<uint64_t>(alone * (slow ? 2 : 1)));
      work += alone / 1000;
    }
  CHECK(job.kinds.count() == 5);
  CHECK(std::abs(job.work(false) / work - 1) < 0.02);
}

void there_are_never_more_than_a_few() {
  Job job;
  for (uint32_t n = 0; n < 3000; ++n) {
    Shape s{10 + 20 * (n % 40), 64 * n, kAllocations + n % 50 * 7};
    job.iterate(s);
  }
  CHECK(job.kinds.count() == IterationKinds::kMost);
  uint64_t most = 0;
  for (uint32_t i = 0; i < job.kinds.count(); ++i)
    most = std::max(most, job.kinds.kind(i).curve.claim(0));
  CHECK(most >= 10 + 20 * 39 - 30);  // who joined left its bytes
}

// Its peak comes behind the last allocation that is recorded.
void what_is_beyond_the_record_is_claimed() {
  constexpr Shape kEndless{kPeak, 4096, 2 * Recorder::kCapacity + 1000};
  Job job;
  for (int n = 0; n < 3; ++n) job.iterate(kEndless);
  job.begin();
  job.allocate(kEndless, 0, Recorder::kCapacity - 1);
  CHECK(job.claim() >= kPeak && job.claim() < Job::kAll);
  job.allocate(kEndless, Recorder::kCapacity - 1, Recorder::kCapacity + 400);
  CHECK(job.claim() >= kPeak && job.claim() < Job::kAll);
  job.allocate(kEndless, Recorder::kCapacity + 400, kEndless.allocations);
  job.end();
  CHECK(job.kinds.count() == 1);
}

void the_first_iteration_of_a_known_job_is_work_of_no_kind() {
  Job job;
  job.begin();
  job.allocate({kPeak, 100, kAllocations / 2}, 0, kAllocations / 2);
  job.kinds.pass_over();
  CHECK(job.kinds.count() == 0 && job.work(false) == 1);
  for (int n = 0; n < 4; ++n) job.iterate({kPeak, 100});
  CHECK(job.kinds.count() == 1 && job.kinds.kind(0).weight == 1);
  CHECK(std::abs(job.work(false) - 5) < 1e-9);
}

}  // namespace

int main() {
  alike_iterations_are_of_one_kind();
  others_are_of_others();
  what_holds_the_same_is_told_apart_by_its_length();
  batches_take_a_few_kinds_only();
  kinds_of_an_earlier_run_are_known();
  sizes_are_those_of_kinds_that_come_often();
  kinds_that_came_often_before_are_usual_at_once();
  a_curve_in_steps_is_known_again();
  times_that_were_given_are_replaced_at_once();
  more_kinds_than_there_can_be_are_left_out();
  what_comes_next_is_what_came_next();
  the_first_allocations_tell_the_claim();
  what_begins_alike_claims_the_most_of_both();
  an_unknown_beginning_claims_everything();
  after_a_mistake_nothing_is_believed_for_a_while();
  work_is_counted_by_kind();
  work_is_the_same_however_slow_it_is();
  an_epochs_workers_are_work_beside_its_iterations();
  who_starts_processes_all_the_time_does_so_in_iterations();
  a_checkpoint_is_work_behind_an_iteration();
  what_is_short_behind_an_iteration_is_a_part_of_it();
  a_profiled_kind_that_is_gone_hands_its_measure_on();
  the_first_iteration_of_a_known_job_is_work_of_no_kind();
  there_are_never_more_than_a_few();
  what_is_beyond_the_record_is_claimed();
  puts("iteration kinds: ok");
}
