// Jobs that are set aside start no iteration, make room, and come back with every byte; that is so
// only while another job is there to run instead, and nobody waits behind them.
#include <array>
#include <random>

#include "wedge.h"

namespace {

constexpr uint64_t bit(uint32_t id) { return uint64_t{1} << id; }

template <class Condition>
bool soon(Condition condition) {
  for (int n = 0; n < 1000 && !condition(); ++n) std::this_thread::sleep_for(milliseconds(5));
  return condition();
}

// Job 1 and 2 keep 10 pages of 40 each at their doors; job 2 waits there in a thread of its own.
struct Pair {
  World w{Policy::kZico, 40};
  std::vector<WritingJob> jobs;
  std::thread second;
  std::atomic<uint64_t> iterations{0};
  bool interrupted = false;

  explicit Pair(bool both_measured = true) : jobs(begun(w, 2)) {
    w.permit_all(2);
    for (WritingJob& j : jobs) {
      if (both_measured || j.id == 2) claims(j, 20, 10);
      while (j.pages.size() < 10) j.take();
    }
  }
  void second_runs(int iterations_of_it) {
    second = std::thread([this, iterations_of_it] {
      try {
        for (int n = 0; n < iterations_of_it; ++n) {
          jobs[1].iterate(20, 10);
          ++iterations;
        }
      } catch (const OutOfMemory&) {
        interrupted = true;
      }
      jobs[1].end();
      w.governor.thread_leaves(2);
    });
  }
  bool is_away() { return w.governor.copied_out() == bit(2); }
  ~Pair() {
    if (second.joinable()) second.join();
    CHECK(w.telemetry.header(kHeldTotal) == 0);
    CHECK_EMPTY(w.governor.check());
  }
};

void it_leaves_at_its_door_and_comes_back_when_told() {
  Pair pair;
  pair.w.governor.set_aside(bit(2));
  pair.second_runs(3);
  CHECK(soon([&] { return pair.is_away(); }));
  CHECK(pair.iterations == 0 && pair.w.telemetry.slot(2, kHeld) == 0);
  for (int n = 0; n < 50; ++n) {
    pair.jobs[0].iterate(20, 10);
    std::this_thread::sleep_for(milliseconds(1));
  }
  CHECK(pair.iterations == 0 && pair.w.telemetry.slot(2, kCopiesOut) == 1);
  pair.w.governor.set_aside(0);
  while (pair.iterations < 3) pair.jobs[0].iterate(20, 10);
  CHECK(pair.w.telemetry.slot(2, static_cast<Slot>(kWaitedNs + uint32_t{kSetAside} - 1)) > 0);
  pair.jobs[0].end();
}

void it_comes_back_when_the_others_have_ended() {
  Pair pair;
  pair.w.governor.set_aside(bit(2));
  pair.second_runs(3);
  CHECK(soon([&] { return pair.is_away(); }));
  pair.jobs[0].iterate(20, 10);
  pair.jobs[0].end();
  pair.second.join();
  CHECK(pair.iterations == 3);
}

// Job 1 was never measured: it may never come to its door.
void it_does_not_wait_for_a_job_that_is_setting_up() {
  Pair pair(false);
  pair.w.governor.set_aside(bit(2));
  pair.second_runs(3);
  pair.second.join();
  CHECK(pair.iterations == 3);
  pair.jobs[0].end();
}

void not_all_can_be_set_aside() {
  Pair pair;
  pair.w.governor.set_aside(bit(1) | bit(2));
  pair.second_runs(3);
  pair.jobs[0].iterate(20, 10);
  pair.second.join();
  CHECK(pair.iterations == 3);
  pair.jobs[0].end();
}

void who_is_cancelled_comes_back() {
  Pair pair;
  pair.w.governor.set_aside(bit(2));
  pair.second_runs(3);
  CHECK(soon([&] { return pair.is_away(); }));
  pair.w.governor.cancel(2);
  pair.second.join();
  CHECK(pair.interrupted && pair.iterations == 0);
  pair.jobs[0].end();
}

// With a thread that computes: its door is shut, and its memory stays.
void who_cannot_leave_waits_at_its_door() {
  Pair pair;
  pair.w.governor.thread_enters(2);
  pair.w.governor.set_aside(bit(2));
  pair.second_runs(3);
  for (int n = 0; n < 50; ++n) pair.jobs[0].iterate(20, 10);
  CHECK(pair.iterations == 0 && !pair.is_away());
  pair.w.governor.set_aside(0);
  pair.second.join();
  pair.w.governor.thread_leaves(2);
  pair.jobs[0].end();
}

// Others ask later than the one that is set aside, again and again, and never wait for it.
void nobody_waits_behind_it() {
  World w(Policy::kTemporal, 40);
  std::vector<WritingJob> jobs = begun(w, 3);
  for (WritingJob& j : jobs) claims(j, 20, 2);
  w.governor.set_aside(bit(2));
  std::atomic<bool> ended{false};
  std::vector<std::thread> threads;
  for (WritingJob& j : jobs)
    threads.emplace_back([&] {
      for (int n = 0; n < 200; ++n) j.iterate(20, 2);
      if (j.id == 2) CHECK(ended);
      if (j.id == 1) ended = true;
      j.end();
      w.governor.thread_leaves(j.id);
    });
  for (auto& t : threads) t.join();
  CHECK_EMPTY(w.governor.check());
}

// Job 1 sleeps for the answer of job 2's thread, which is away with it: they change places, and job
// 2 is told to stand aside no longer, though job 3 is here, asleep too.
void it_comes_back_for_who_needs_it() {
  World w(Policy::kZico, 40);
  std::vector<WritingJob> jobs = begun(w, 3);
  for (WritingJob& j : jobs) {
    claims(j, 12, 8);
    while (j.pages.size() < 8) j.take();
  }
  Governor& governor = w.governor;
  std::atomic<bool> answered{false};
  governor.set_aside(bit(2));
  std::thread second([&] {
    jobs[1].iterate(12, 8);
    answered = true;
    jobs[1].end();
    governor.thread_leaves(2);
  });
  CHECK(soon([&] { return governor.copied_out() == bit(2); }));
  for (uint32_t id : {1u, 3u}) governor.begin_rest(id);
  CHECK(soon([&] { return answered.load(); }));
  CHECK(w.telemetry.slot(1, kCopiesOut) + w.telemetry.slot(3, kCopiesOut) == 1);
  second.join();
  for (uint32_t id : {1u, 3u}) {
    if (!governor.end_rest(id)) governor.rest_on(id);
    jobs[id - 1].end();
  }
  CHECK_EMPTY(governor.check());
}

// Job 1 is in a long iteration: who comes back need not wait for its end, nor who is here either.
void a_change_stops_nobody() {
  World w(Policy::kZico, 40);
  std::vector<WritingJob> jobs = begun(w, 3);
  w.permit_all(3);
  for (WritingJob& j : jobs) {
    claims(j, 8, 2);
    while (j.pages.size() < 2) j.take();
  }
  w.governor.set_aside(bit(3));
  std::atomic<bool> over{false};
  std::array<std::atomic<uint64_t>, 4> iterations{};
  std::vector<std::thread> threads;
  for (WritingJob& j : jobs)
    threads.emplace_back([&] {
      j.iterate(8, 2);
      while (!over) {
        if (j.id == 1) std::this_thread::sleep_for(milliseconds(1));
        if (j.id != 1) j.iterate(8, 2);
        ++iterations[j.id];
      }
      j.end();
      w.governor.thread_leaves(j.id);
    });
  CHECK(soon([&] { return w.governor.copied_out() == bit(3); }));
  w.governor.set_aside(0);
  CHECK(soon([&] { return iterations[3] > 20; }));
  uint64_t before = iterations[2];
  CHECK(soon([&] { return iterations[2] > before + 20; }));
  over = true;
  for (auto& t : threads) t.join();
  CHECK_EMPTY(w.governor.check());
}

// What it keeps counts, wherever that is.
void the_budget_can_be_cut_meanwhile() {
  Pair pair;
  pair.w.governor.set_aside(bit(2));
  pair.second_runs(3);
  CHECK(soon([&] { return pair.is_away(); }));
  CHECK(pair.w.governor.set_budget(15) != "");  // both keep more
  CHECK_EMPTY(pair.w.governor.set_budget(34));
  pair.jobs[0].iterate(20, 10);
  pair.jobs[0].iterate(20, 10);
  CHECK(pair.w.governor.budget_pages() == 34);
  pair.w.governor.set_aside(0);
  while (pair.iterations < 3) pair.jobs[0].iterate(20, 10);
  pair.jobs[0].end();
}

// Any of them at any time: all come to their end, and no byte is lost.
void any_at_any_time(uint32_t jobs, uint32_t iterations) {
  World w(Policy::kZico, 40);
  std::vector<WritingJob> working = begun(w, jobs);
  w.permit_all(jobs);
  std::vector<std::thread> threads;
  for (WritingJob& j : working)
    threads.emplace_back([&w, &j, iterations] {
      for (uint32_t n = 0; n < iterations; ++n) j.iterate(8 + 3 * j.id, j.id);
      j.end();
      w.governor.thread_leaves(j.id);
    });
  std::atomic<bool> ended{false};
  std::thread scheduler([&] {
    for (std::mt19937_64 random(1); !ended; std::this_thread::sleep_for(milliseconds(3)))
      w.governor.set_aside(random() & random());
  });
  for (auto& t : threads) t.join();
  ended = true;
  scheduler.join();
  uint64_t copies = 0;
  for (uint32_t id = 1; id <= jobs; ++id) {
    CHECK(w.telemetry.slot(id, kIterations) == iterations);
    copies += w.telemetry.slot(id, kCopiesOut);
  }
  CHECK(copies > 0);
  CHECK_EMPTY(w.governor.check());
}

}  // namespace

int main() {
  it_leaves_at_its_door_and_comes_back_when_told();
  it_comes_back_when_the_others_have_ended();
  it_does_not_wait_for_a_job_that_is_setting_up();
  not_all_can_be_set_aside();
  who_is_cancelled_comes_back();
  who_cannot_leave_waits_at_its_door();
  nobody_waits_behind_it();
  it_comes_back_for_who_needs_it();
  a_change_stops_nobody();
  the_budget_can_be_cut_meanwhile();
  any_at_any_time(4, 3000);
  puts("aside: ok");
}
