// Batches of an evaluation are told apart by their memory, training iterations are left whole, and
// between two batches there is a door.
#include "../src/evaluation.h"

#include <functional>
#include <vector>

#include "world.h"

namespace {

constexpr int64_t kParameters = 1000000, kActivations = 100000;

// A script's allocations, of which it is seen where its iterations end.
class Script {
 public:
  Script() { evaluation_.begin(true); }
  void allocate(int64_t live) {
    if (evaluation_.batch_ended(ordinal_, kParameters + live, keeps_little)) {
      batches.push_back(ordinal_);
      CHECK(evaluation_.close());
      open();
    }
    ++ordinal_;
  }
  // Up to half of its allocations memory rises, then it falls; `kept` is there all the time.
  void batch(uint32_t allocations, int64_t kept = 0, int64_t most = kActivations) {
    for (uint32_t i = 0; i < allocations; ++i)
      allocate(kept + most * 2 * std::min(i, allocations - i) / allocations);
  }
  void train(uint32_t before_graph = 5) {
    batch(before_graph);
    evaluation_.note_graph(ordinal_);
    ordinal_ += 100;
    CHECK(!evaluation_.close());
    open();
  }
  void open(bool may_end = true) {
    evaluation_.begin(may_end);
    ordinal_ = 0;
  }
  std::vector<uint32_t> batches;  // how many allocations each had
  bool keeps_little = true;

 private:
  Evaluation evaluation_;
  uint32_t ordinal_ = 0;
};

void training_is_left_whole() {
  Script s;
  for (int n = 0; n < 50; ++n) s.train(60);
  CHECK(s.batches.empty());
}

void a_batch_ends_where_its_memory_has_fallen() {
  Script s;
  for (int n = 0; n < 3; ++n) s.train();
  for (int n = 0; n < 40; ++n) s.batch(50);
  CHECK(s.batches.size() == 40);
  for (size_t i = 1; i < s.batches.size(); ++i) CHECK(s.batches[i] == 50);
  for (int n = 0; n < 3; ++n) s.train();
  CHECK(s.batches.size() == 40);
}

// What is made of a batch, however long that takes, is a part of it.
void between_two_batches_there_is_one_end() {
  Script s;
  for (int n = 0; n < 3; ++n) s.train();
  for (int n = 0; n < 20; ++n) {
    s.batch(60);
    for (int i = 0; i < 100; ++i) s.allocate(0);
  }
  CHECK(s.batches.size() == 20);
  for (size_t i = 1; i < s.batches.size(); ++i) CHECK(s.batches[i] == 160);
}

void small_batches_go_together() {
  Script s;
  for (int n = 0; n < 3; ++n) s.train();
  for (int n = 0; n < 40; ++n) s.batch(10);
  CHECK(s.batches.size() >= 8);
  for (size_t i = 1; i < s.batches.size(); ++i) CHECK(s.batches[i] == 40);
}

// An evaluation is cut into the same batches each time that it comes.
void an_evaluation_is_cut_alike_each_time() {
  Script s;
  std::vector<std::vector<uint32_t>> epochs;
  for (int epoch = 0; epoch < 5; ++epoch) {
    for (int n = 0; n < 4; ++n) s.train(20);
    s.batches.clear();
    for (int n = 0; n < 10; ++n) s.batch(30 + 20 * (n % 3));
    epochs.push_back(s.batches);
  }
  for (const auto& epoch : epochs) CHECK(epoch == epochs[0] && epoch.size() >= 4);
}

void results_that_are_kept_hide_no_batch() {
  Script s;
  for (int n = 0; n < 3; ++n) s.train();
  for (int n = 0; n < 100; ++n) s.batch(50, n * kActivations / 50);
  CHECK(s.batches.size() >= 95);
}

// Something large is made in between, and stays; another time it goes.
void what_is_made_in_between_hides_them_for_a_while_only() {
  Script s;
  for (int n = 0; n < 3; ++n) s.train();
  for (int n = 0; n < 20; ++n) s.batch(50);
  CHECK(s.batches.size() >= 18);
  s.batches.clear();
  for (int n = 0; n < 40; ++n) s.batch(50, 3 * kActivations);
  CHECK(s.batches.size() >= 25);
  s.batches.clear();
  for (int n = 0; n < 40; ++n) s.batch(50, 0, kActivations / 10);
  CHECK(s.batches.size() >= 25);
}

void where_memory_stands_still_any_place_will_do() {
  Script s;
  for (int n = 0; n < 3; ++n) s.train();
  for (int n = 0; n < 5000; ++n) s.allocate(0);
  CHECK(s.batches.size() >= 20);
  for (size_t i = 1; i < s.batches.size(); ++i) CHECK(s.batches[i] <= 5 * Evaluation::kFew);
}

// From some epoch on a teacher answers first, without a graph, in each iteration.
void what_comes_before_every_graph_is_no_evaluation() {
  Script s;
  for (int n = 0; n < 10; ++n) s.train();
  for (int n = 0; n < 20; ++n) {
    for (int layer = 0; layer < 6; ++layer) s.batch(50);
    s.train();
  }
  CHECK(s.batches.size() <= 3 * 6);
  s.batches.clear();
  for (int n = 0; n < 20; ++n) s.train(300);
  CHECK(s.batches.empty());
}

// Nor what comes before one graph: that would be every evaluation.
void an_evaluation_does_not_hide_the_next() {
  Script s;
  for (int epoch = 0; epoch < 5; ++epoch) {
    for (int n = 0; n < 4; ++n) s.train();
    s.batches.clear();
    for (int n = 0; n < 40; ++n) s.batch(50);
    CHECK(s.batches.size() == 40);
  }
}

// Whenever they come: before anything is known, while a profile is made, two in a row, before each
// graph (as long as they are long).
void evaluations_hide_no_others() {
  for (int early = 0; early < 4; ++early) {
    Script s;
    for (int n = 0; n < 4; ++n) {
      if (n == early) s.batch(5000);
      s.train();
    }
    s.open(false);
    s.batch(5000);
    s.train();
    for (int n = 0; n < 2; ++n) {
      for (int m = 0; m < 40; ++m) s.batch(50);
      s.train();
    }
    for (int n = 0; n < 3; ++n) s.train();
    for (int round = 0; round < 10; ++round) {
      s.batches.clear();
      for (int m = 0; m < 40; ++m) s.batch(50);
      CHECK(s.batches.size() >= 38);
      s.train();
    }
  }
}

void a_long_prelude_is_forgotten() {
  Script s;
  for (int n = 0; n < 3; ++n) s.train();
  s.keeps_little = false;
  s.train(4000);
  s.keeps_little = true;
  for (int n = 0; n < 50; ++n) s.train();
  for (int n = 0; n < 40; ++n) s.batch(50);
  CHECK(s.batches.size() >= 38);
}

void none_ends_while_much_is_kept() {
  Script s;
  for (int n = 0; n < 3; ++n) s.train();
  s.keeps_little = false;
  for (int n = 0; n < 40; ++n) s.batch(50);
  CHECK(s.batches.empty());
  s.keeps_little = true;
  for (int n = 0; n < 40; ++n) s.batch(50);
  CHECK(s.batches.size() >= 20);
}

void what_is_taken_back_has_not_ended() {
  Evaluation e;
  e.begin(true);
  for (int n = 0; n < 3; ++n) e.note_graph(5), e.begin(true);
  uint32_t ordinal = 0;
  auto live = [&] { return kActivations * (ordinal % 50 < 25); };
  while (!e.batch_ended(ordinal, live(), true)) CHECK(++ordinal < 1000);
  CHECK(e.close());
  e.take_back();
  CHECK(!e.close());
}

void no_batch_ends_where_it_may_not() {
  Script without_graphs;
  for (int n = 0; n < 100; ++n) without_graphs.batch(50);
  CHECK(without_graphs.batches.empty());
  Script profiled;
  for (int n = 0; n < 3; ++n) profiled.train();
  profiled.open(false);
  for (int n = 0; n < 100; ++n) profiled.batch(50);
  CHECK(profiled.batches.empty());
}

// A job in the shim, by its live bytes.
struct Evaluating : Job {
  using Job::Job;
  void allocate(int64_t live) {
    Account& a = w.governor.account(id);
    a.live = live;
    if (a.stop != Stop::kNowhere && w.governor.stops_here(id)) w.governor.pass_door(id);
    take(), give();
  }
  void train() {
    w.governor.mark(id);
    for (int i = 0; i < 3; ++i) allocate(i);
    w.governor.note_graph(id);
    for (int i = 3; i > 0; --i) allocate(i);
  }
  // Without an end between its batches but for what the shim finds. `kept` pages stay meanwhile.
  void evaluate(const std::function<bool()>& goes_on, uint64_t kept = 0) {
    w.governor.mark(id);
    allocate(0);
    while (pages.size() < kept) take();
    while (goes_on())
      for (int i = 0; i < 40; ++i) allocate(kActivations * std::min(i, 40 - i));
  }
};

// Who comes meanwhile need not wait for all of them. They are no iterations.
void another_job_starts_between_two_batches(Policy policy) {
  World w(policy, 100);
  for (int i = 0; i < 2; ++i) w.governor.begin_job(1);
  w.permit_all(2, {true, kNever, 0});
  Evaluating a{w, 1}, b{w, 2};
  for (int n = 0; n < 6; ++n) a.train();
  std::atomic<bool> done{false};
  std::thread other([&] {
    for (int n = 0; n < 4; ++n) b.train();
    b.end();
    done = true;
  });
  int batches = 0;
  a.evaluate([&] { return !done && ++batches < 200000; });
  CHECK(done);
  other.join();
  a.end();
  CHECK(w.telemetry.slot(1, kBatches) >= 2);
  CHECK(w.telemetry.slot(1, kIterations) == 7 && w.telemetry.slot(2, kIterations) == 4);
  CHECK(w.telemetry.slot(2, kBatches) == 0);
  CHECK_EMPTY(w.governor.check());
}

// Predictions, say. At a door they would be what the job keeps between two iterations.
void results_that_are_kept_raise_no_residue() {
  World w(Policy::kTemporal, 100);
  w.governor.begin_job(1);
  Evaluating a{w, 1};
  for (int n = 0; n < 6; ++n) a.train();
  uint64_t residue = w.telemetry.slot(1, kResidue);
  for (uint64_t kept : {1, 30}) {
    int batches = 0;
    uint64_t before = w.telemetry.slot(1, kBatches);
    a.evaluate([&] { return ++batches < 100; }, kept);
    uint64_t found = w.telemetry.slot(1, kBatches) - before;
    CHECK(kept == 1 ? found > 50 : found == 0);
    w.governor.inspect(1, [](const Account& of) {
      for (uint32_t i = 0; i < of.iteration_kinds.count(); ++i)
        CHECK(of.iteration_kinds.kind(i).curve.residue() == of.curve.residue());
    });
    CHECK(w.telemetry.slot(1, kResidue) == residue);
    while (!a.pages.empty()) a.give();
    for (int n = 0; n < 3; ++n) a.train();
  }
  a.end();
}

// Of as many allocations, and much faster.
void iterations_take_as_long_as_before() {
  World w(Policy::kTemporal, 100);
  w.governor.begin_job(1);
  Evaluating a{w, 1};
  auto train = [&](int iterations) {
    for (int n = 0; n < iterations; ++n) {
      a.train();
      for (int i = 0; i < 34; ++i) a.allocate(0);
      std::this_thread::sleep_for(milliseconds(5));
    }
  };
  auto duration_ns = [&] {
    uint64_t ns = 0;
    w.governor.inspect(1, [&](const Account& of) { ns = of.curve.duration_ns(); });
    return ns;
  };
  train(8);
  CHECK(duration_ns() > 5000000);
  int batches = 0;
  a.evaluate([&] { return ++batches < 200; });
  CHECK(w.telemetry.slot(1, kBatches) > 100 && duration_ns() > 5000000);
  a.end();
}

// A door in a capture would become a part of it; what is profiled is whole iterations.
void no_batch_ends_in_a_capture_or_in_a_profile(uint32_t warmup, int trained, uint32_t captures) {
  World w(Policy::kTemporal, 100);
  w.governor.begin_job(warmup);
  Evaluating a{w, 1};
  for (int n = 0; n < trained; ++n) a.train();
  w.governor.account(1).captures += captures;
  int batches = 0;
  a.evaluate([&] { return ++batches < 100; });
  CHECK(w.telemetry.slot(1, kBatches) == 0);
  a.end();
}

}  // namespace

int main() {
  training_is_left_whole();
  a_batch_ends_where_its_memory_has_fallen();
  between_two_batches_there_is_one_end();
  small_batches_go_together();
  an_evaluation_is_cut_alike_each_time();
  results_that_are_kept_hide_no_batch();
  what_is_made_in_between_hides_them_for_a_while_only();
  where_memory_stands_still_any_place_will_do();
  what_comes_before_every_graph_is_no_evaluation();
  an_evaluation_does_not_hide_the_next();
  evaluations_hide_no_others();
  a_long_prelude_is_forgotten();
  none_ends_while_much_is_kept();
  what_is_taken_back_has_not_ended();
  no_batch_ends_where_it_may_not();
  another_job_starts_between_two_batches(Policy::kTemporal);
  another_job_starts_between_two_batches(Policy::kZico);
  results_that_are_kept_raise_no_residue();
  iterations_take_as_long_as_before();
  no_batch_ends_in_a_capture_or_in_a_profile(1, 6, 1);
  no_batch_ends_in_a_capture_or_in_a_profile(9, 6, 0);
}
