// Forks: the others are parked meanwhile, whatever the policy is, and who forks does not wait for
// what can't come, nor is what it waits a part of its iteration.
#include <cmath>

#include "../src/clock.h"
#include "../src/progress.h"
#include "world.h"

namespace {

void a_fork_parks_the_others(Policy policy) {
  World w(policy, 64);
  for (int i = 0; i < 2; ++i) w.governor.begin_job(0);
  w.permit_all(2);
  std::atomic<bool> ending{false}, working{false};
  std::thread t([&] {
    Job b{w, 2};
    while (!ending) {
      w.governor.mark(2), w.governor.pass_door(2);
      working = true;
      while (b.pages.size() < 8) b.take();
      while (!b.pages.empty()) b.give();
      working = false;
    }
    b.end();
  });
  for (int n = 0; n < 100; ++n) {
    CHECK(w.governor.park_others(1, 5000000000));
    uint64_t before = w.telemetry.slot(2, kIterations);
    std::this_thread::sleep_for(std::chrono::microseconds(300));
    CHECK(!working && w.telemetry.slot(2, kIterations) == before);
    w.governor.unpark_others(1);
    while (w.telemetry.slot(2, kIterations) == before) std::this_thread::yield();
  }
  ending = true;
  t.join();
}

void two_forks_of_a_job_at_once() {
  World w(Policy::kZico, 64);
  w.governor.begin_job(0);
  for (int n = 0; n < 2; ++n) CHECK(w.governor.park_others(1, 5000000000));
  w.governor.unpark_others(1);
  std::this_thread::sleep_for(milliseconds(30));
  CHECK(w.governor.forking());
  w.governor.unpark_others(1);
  while (w.governor.forking()) std::this_thread::yield();
}

// What a signal raises may end a fork before it was counted.
void a_fork_that_was_not_counted_ends_no_other() {
  World w(Policy::kZico, 64);
  w.governor.between_forks = std::chrono::hours(1);
  w.governor.begin_job(0);
  CHECK(w.governor.park_others(1, 5000000000));
  for (int n = 0; n < 2; ++n) w.governor.unpark_others(1);
  w.governor.between_forks = milliseconds(5);
  CHECK(w.governor.park_others(1, 5000000000));
  w.governor.unpark_others(1);
  for (int n = 0; n < 5000 && w.governor.forking(); ++n)
    std::this_thread::sleep_for(milliseconds(1));
  CHECK(!w.governor.forking());
}

// It has a lock in hand that the one that forks may want: it goes on once there is room.
void who_has_a_lock_is_given_memory_while_another_forks() {
  World w(Policy::kZico, 40);
  for (int i = 0; i < 3; ++i) w.governor.begin_job(0);
  Job keeper{w, 3};
  while (keeper.pages.size() < 30) keeper.take();
  std::atomic<bool> refused{false}, over{false};
  std::thread waits([&] {
    w.governor.thread_enters(2);
    try {
      w.governor.charge(2, 20, true, 20 * kPage);
      w.governor.uncharge(2, 20);
    } catch (const OutOfMemory&) {
      refused = true;
    }
    over = true;
    w.governor.thread_leaves(2);
  });
  while (w.telemetry.slot(2, kState) != kWaitingForMemory) std::this_thread::yield();
  CHECK(w.governor.park_others(1, 5000000000));
  while (!keeper.pages.empty()) keeper.give();
  waits.join();
  CHECK(over && !refused && w.governor.forking());
  w.governor.unpark_others(1);
  for (uint32_t id : {1u, 2u, 3u}) w.governor.end_job(id);
}

// Another one that computes all the time.
struct Beside {
  World& w;
  std::atomic<bool> ending{false};
  std::thread thread{[this] {
    Job job{w, 2};
    while (!ending) {
      w.governor.mark(2), w.governor.pass_door(2);
      job.take();
      job.give();
    }
    job.end();
  }};
  uint64_t iterations() const { return w.telemetry.slot(2, kIterations); }
  void iterates() {
    for (uint64_t before = iterations(); iterations() == before;) std::this_thread::yield();
  }
  ~Beside() {
    ending = true;
    thread.join();
  }
};

// Between the forks of one that starts workers the others begin nothing, until it goes on itself,
// or has not forked for a while, or has ended.
void forks_one_after_the_other_stop_the_others_once(int how_it_ends) {
  World w(Policy::kUnmanaged, 64);
  w.governor.between_forks = how_it_ends == 0 ? milliseconds(50) : std::chrono::hours(1);
  for (int i = 0; i < 2; ++i) w.governor.begin_job(0);
  Job one{w, 1};
  w.governor.mark(1), w.governor.pass_door(1);
  Beside two{w};
  two.iterates();
  uint64_t seen = 0;
  for (int n = 0; n < 4; ++n) {
    CHECK(w.governor.park_others(1, 5000000000));
    if (n && how_it_ends) CHECK(two.iterations() == seen);
    seen = two.iterations();
    w.governor.unpark_others(1);
    if (how_it_ends) std::this_thread::sleep_for(milliseconds(20));
    CHECK(how_it_ends == 0 || w.governor.forking());
  }
  if (how_it_ends == 1) w.governor.mark(1), w.governor.pass_door(1);
  if (how_it_ends == 2) one.end();
  two.iterates();
  CHECK(!w.governor.forking());
}

// Or the others would never go on.
void who_forks_all_the_time_lets_the_others_go_on() {
  World w(Policy::kUnmanaged, 64);
  w.governor.between_forks = std::chrono::hours(1);
  w.governor.longest_forks = milliseconds(50);
  for (int i = 0; i < 2; ++i) w.governor.begin_job(0);
  Beside two{w};
  two.iterates();
  auto fork = [&] {
    CHECK(w.governor.park_others(1, 5000000000));
    w.governor.unpark_others(1);
  };
  fork();
  for (uint64_t before = two.iterations(); two.iterations() < before + 20;) fork();
  w.governor.end_job(1);
}

// Nor do two that fork in turn keep a third one where it is.
void two_that_fork_all_the_time_let_a_third_one_go_on() {
  World w(Policy::kUnmanaged, 64);
  w.governor.between_forks = std::chrono::hours(1);
  w.governor.longest_forks = milliseconds(1000);
  for (int i = 0; i < 3; ++i) w.governor.begin_job(0);
  Beside two{w};
  two.iterates();
  auto fork = [&](uint32_t id) {
    CHECK(w.governor.park_others(id, 5000000000));
    w.governor.unpark_others(id);
  };
  fork(1);  // from here on it stands
  uint64_t before = two.iterations();
  for (int n = 0; two.iterations() < before + 3; ++n) fork(n % 2 ? 1 : 3);
  for (uint32_t id : {1, 3}) w.governor.end_job(id);
}

// Who forks next need not wait until that time is over.
void another_one_may_fork_at_once() {
  World w(Policy::kUnmanaged, 64);
  w.governor.between_forks = std::chrono::hours(1);
  for (int i = 0; i < 2; ++i) w.governor.begin_job(0);
  CHECK(w.governor.park_others(1, 5000000000));
  w.governor.unpark_others(1);
  CHECK(w.governor.park_others(2, 5000000000));
  w.governor.unpark_others(1);  // it is not the one that forks now
  CHECK(w.governor.forking());
  w.governor.unpark_others(2);
  CHECK(w.governor.park_others(1, 5000000000));
  w.governor.unpark_others(1);
}

// It waits for what the one that forks has in hand, in its own iteration, so it computes nothing.
// But another thread of it may, which is not passed over at once.
void a_fork_does_not_wait_for_who_is_about_to_fork(bool computes) {
  World w(Policy::kZico, 40);
  for (int i = 0; i < 2; ++i) w.governor.begin_job(0);
  Job two{w, 2};
  w.governor.thread_enters(2);
  if (computes) w.governor.thread_enters(2);
  w.governor.mark(2);
  w.governor.pass_door(2);
  two.take();
  w.governor.await_turn_to_fork(2, true);
  uint64_t start = now_ns();
  CHECK(w.governor.park_others(1, 5000000000));
  CHECK(!computes || now_ns() >= start + 100000000);
  w.governor.unpark_others(1);
  w.governor.await_turn_to_fork(2, false);
  CHECK(!w.governor.park_others(1, 200000000));
  w.governor.unpark_others(1);
  two.give();
}

// Two jobs, of which the second one is in its iteration.
struct OneInItsIteration {
  World w;
  Governor& governor = w.governor;
  Job two{w, 2};

  explicit OneInItsIteration(bool ticks = true) : w{Policy::kZico, 40, ticks} {
    w.governor.between_forks = milliseconds(0);
    for (int i = 0; i < 2; ++i) w.governor.begin_job(0);
    w.governor.thread_enters(2);
    w.governor.mark(2), w.governor.pass_door(2);
    two.take();
  }
  ~OneInItsIteration() {
    w.governor.thread_leaves(2);
    two.end();
  }
  bool park(uint64_t ms) { return w.governor.park_others(1, ms * 1000000); }
  void unpark() {
    w.governor.unpark_others(1);
    while (w.governor.forking()) w.governor.tick();
  }
  uint64_t waited_ns(Slot slot) const { return w.telemetry.slot(2, slot); }
};

// It is inside nothing, and is not when it wakes meanwhile.
void a_fork_does_not_wait_for_who_rests() {
  OneInItsIteration jobs;
  Governor& governor = jobs.governor;
  CHECK(!jobs.park(200));  // it computes
  jobs.unpark();
  governor.begin_rest(2);
  uint64_t start = now_ns();
  CHECK(jobs.park(5000) && now_ns() < start + 1000000000);
  CHECK(!governor.end_rest(2));
  std::atomic<bool> goes_on{false};
  std::thread woken([&] {
    governor.rest_on(2);
    goes_on = true;
  });
  std::this_thread::sleep_for(milliseconds(30));
  CHECK(!goes_on && jobs.park(0));
  governor.unpark_others(1), governor.unpark_others(1);
  woken.join();
  CHECK(goes_on && jobs.waited_ns(static_cast<Slot>(kWaitedNs + int{kForking} - 1)) >= 20000000);
  while (governor.forking()) std::this_thread::yield();
  CHECK(!jobs.park(50));
  jobs.unpark();
  governor.begin_rest(2);
  CHECK(governor.end_rest(2));
}

// The one that forks need not look at the clock for that.
void who_comes_to_rest_is_seen_at_once() {
  OneInItsIteration jobs(false);
  std::thread t([&] {
    std::this_thread::sleep_for(milliseconds(200));
    jobs.governor.begin_rest(2);
  });
  uint64_t start = now_ns();
  CHECK(jobs.park(5000) && now_ns() < start + 3000000000);
  t.join();
  jobs.unpark();
  CHECK(jobs.governor.end_rest(2));
}

// Or one that forks, and wants a lock that the thread has, would wait for ever.
void who_wakes_is_not_held_for_ever() {
  OneInItsIteration jobs;
  jobs.governor.longest_hold = milliseconds(30);
  jobs.governor.begin_rest(2);
  CHECK(jobs.park(5000) && !jobs.governor.end_rest(2));
  uint64_t start = now_ns();
  CHECK(!jobs.governor.rest_on(2));
  CHECK(now_ns() >= start + 30000000 && !jobs.park(50));
  jobs.governor.begin_rest(2, Rest::kHeldForLong);
  CHECK(jobs.governor.end_rest(2, Rest::kHeldForLong));
  jobs.governor.unpark_others(1);
  jobs.unpark();
}

// Nor is one without which another of its job may not get to the door that is waited for.
void who_wakes_beside_one_that_computes_goes_on() {
  OneInItsIteration jobs;
  jobs.governor.thread_enters(2);
  jobs.governor.begin_rest(2);
  CHECK(!jobs.park(50) && jobs.governor.end_rest(2));
  jobs.governor.begin_rest(2);
  jobs.governor.begin_rest(2);
  CHECK(jobs.park(0) && !jobs.governor.end_rest(2));  // now that all rest
  for (int n = 0; n < 2; ++n) jobs.governor.unpark_others(1);
  CHECK(jobs.governor.rest_on(2) && jobs.governor.end_rest(2));
  jobs.governor.thread_leaves(2);
}

// It computes something of its own, and would stop at its next allocation.
void whose_iteration_is_over_is_not_waited_for() {
  OneInItsIteration jobs;
  jobs.governor.mark(2);
  CHECK(jobs.park(200));
  jobs.unpark();
}

// Forks one after the other wait for the same job only once, though nobody has come to a door.
void what_was_waited_for_in_vain_is_not_again() {
  OneInItsIteration jobs;
  jobs.governor.between_forks = std::chrono::hours(1);
  CHECK(!jobs.park(100));
  jobs.governor.unpark_others(1);
  uint64_t start = now_ns();
  CHECK(!jobs.park(5000) && now_ns() < start + 2000000000);
  jobs.governor.begin_rest(2);
  jobs.governor.unpark_others(1);
  CHECK(jobs.park(5000));
  jobs.governor.unpark_others(1);
  jobs.governor.end_job(1);
  CHECK(jobs.governor.end_rest(2) && jobs.governor.begin_job(0) == 3);
}

// Nor is one of the job that forks.
void who_forks_does_not_hold_its_own_threads() {
  OneInItsIteration jobs;
  jobs.governor.begin_rest(2);
  CHECK(jobs.governor.park_others(2, 5000000000));
  CHECK(jobs.governor.end_rest(2));
  jobs.governor.unpark_others(2);
}

// Native code of the job is under way around it, but one that has slept for long does not wake in
// just that moment.
void who_rests_in_a_library_may_have_its_locks() {
  OneInItsIteration jobs;
  jobs.governor.begin_rest(2, Rest::kInLibrary);
  CHECK(!jobs.park(200));
  jobs.unpark();
  std::this_thread::sleep_for(milliseconds(1300));
  CHECK(jobs.park(200) && jobs.governor.end_rest(2, Rest::kInLibrary));
  jobs.unpark();
  jobs.governor.begin_rest(2);
  CHECK(jobs.park(50) && !jobs.governor.end_rest(2));
  jobs.governor.unpark_others(1);
  jobs.governor.rest_on(2);
}

// A job that is setting up stops at its next allocation until the fork is through.
void a_fork_stops_a_set_up() {
  World w(Policy::kZico, 64);
  for (int i = 0; i < 2; ++i) w.governor.begin_job(0);
  std::atomic<bool> ending{false};
  std::atomic<uint64_t> steps{0};
  std::thread t([&] {
    while (!ending) {
      if (w.governor.forking()) w.governor.stop_for_fork(2);
      ++steps;
    }
  });
  for (int n = 0; n < 100; ++n) {
    CHECK(w.governor.park_others(1, 5000000000));
    uint64_t before = steps;
    std::this_thread::sleep_for(std::chrono::microseconds(200));
    CHECK(steps <= before + 1);  // one that had looked before
    w.governor.unpark_others(1);
    while (steps == before) std::this_thread::yield();
  }
  ending = true;
  t.join();
}

// Nor does the job stand still while a thread stops that has not entered: its own one computes.
void a_thread_that_has_not_entered_stops_too() {
  World w(Policy::kZico, 64);
  for (int i = 0; i < 2; ++i) w.governor.begin_job(0);
  w.governor.has_entered = [](uint32_t) { return false; };
  w.governor.thread_enters(2);
  CHECK(w.governor.park_others(1, 5000000000));
  std::thread t([&] { w.governor.stop_for_fork(2); });
  auto threads = [&] {
    uint32_t all = 0, waiting = 0;
    w.governor.inspect(2, [&](const Account& a) { all = a.threads, waiting = a.waiting_threads; });
    return std::pair(all, waiting);
  };
  while (threads().second == 0) std::this_thread::yield();
  CHECK(threads().first == 2);
  w.governor.unpark_others(1);
  t.join();
  CHECK(threads() == std::pair(1u, 0u));
}

// A thread of the second job that allocates all the time, in an iteration that does not end.
struct Allocating {
  OneInItsIteration& jobs;
  std::atomic<bool> ending{false};
  std::atomic<uint64_t> steps{0};
  std::thread thread{[this] {
    for (; !ending; ++steps)
      if (jobs.governor.forking()) jobs.governor.stop_for_fork(2);
  }};
  bool goes_on() const {
    uint64_t before = steps;
    std::this_thread::sleep_for(milliseconds(2));
    return steps > before + 1;  // one that had looked before
  }
  ~Allocating() {
    ending = true;
    thread.join();
  }
};

// It would be waited for for seconds, where iterations are that long.
void an_iteration_stops_where_it_allocates() {
  uint64_t begun = now_ns(), parked = 0;
  OneInItsIteration jobs;
  {
    Allocating two{jobs};
    for (int n = 0; n < 30; ++n) {
      CHECK(jobs.park(5000));
      uint64_t start = now_ns();
      CHECK(!two.goes_on());
      parked += now_ns() - start;
      jobs.unpark();
      while (!two.goes_on()) std::this_thread::yield();
      std::this_thread::sleep_for(milliseconds(5));  // it may be stopped again
    }
  }
  jobs.two.give();
  jobs.governor.mark(2), jobs.governor.pass_door(2);
  uint64_t all = now_ns() - begun, told = jobs.waited_ns(kDoorWaitNs);
  uint64_t iteration = jobs.waited_ns(kLastIterationNs);
  CHECK(told >= parked && iteration + told <= all);
  CHECK(jobs.waited_ns(static_cast<Slot>(kWaitedNs + int{kForking} - 1)) == told);
}

// Between the forks of one that forks all the time it would come to one allocation only.
void who_was_stopped_goes_on_for_as_long() {
  OneInItsIteration jobs;
  Allocating two{jobs};
  CHECK(jobs.park(5000));
  std::this_thread::sleep_for(milliseconds(300));
  uint64_t start = now_ns();
  jobs.unpark();
  CHECK(jobs.park(5000));
  CHECK(now_ns() >= start + 300000000);
  jobs.unpark();
}

// One that has entered waits for what it computes, at a barrier, and is not seen to.
void a_worker_of_an_iteration_does_not_stop() {
  OneInItsIteration jobs;
  jobs.governor.has_entered = [](uint32_t) { return false; };
  Allocating two{jobs};
  CHECK(!jobs.park(50) && two.goes_on());
  jobs.unpark();
}

// It waits twice: for the lock of imports, and for the other one, which is setting up. `computes`:
// another thread of the job does meanwhile.
void a_wait_to_fork_is_no_part_of_the_iteration(bool computes) {
  World w(Policy::kZico, 64);
  for (int i = 0; i < 2; ++i) w.governor.begin_job(0);
  Job one{w, 1};
  w.governor.thread_enters(1);
  if (computes) w.governor.thread_enters(1);
  uint64_t start = now_ns();
  w.governor.mark(1), w.governor.pass_door(1);
  one.take();
  std::this_thread::sleep_for(milliseconds(20));
  w.governor.await_turn_to_fork(1, true);
  std::this_thread::sleep_for(milliseconds(60));
  w.governor.await_turn_to_fork(1, false);
  uint64_t asked = now_ns();
  CHECK(w.governor.park_others(1, 1000000000));
  CHECK(now_ns() >= asked + 15000000);
  w.governor.unpark_others(1);
  one.give();
  w.governor.mark(1), w.governor.pass_door(1);
  uint64_t took = now_ns() - start;
  CHECK(w.telemetry.slot(1, kIterations) == 1);
  uint64_t duration = w.telemetry.slot(1, kLastIterationNs);
  CHECK(duration >= 20000000 && (duration + 75000000 <= took) != computes);
  auto waited = w.telemetry.slot(1, static_cast<Slot>(kWaitedNs + int{kForking} - 1));
  CHECK(computes ? waited == 0 : waited >= 75000000 && waited == w.telemetry.slot(1, kDoorWaitNs));
  one.end();
}

// A job alone, with a clock of its own: its iterations of 2 ms, and what one of them does besides.
class Epochs {
 public:
  static constexpr uint64_t kMs = 1000000;

  Epochs() {
    virtual_now = &now_;
    CHECK(world_.governor.begin_job(0) == 1);
    for (int n = 0; n < 20; ++n) iterate([] {}, [] {});
  }
  ~Epochs() { virtual_now = nullptr; }
  // What it counts as; `within` it and behind its end.
  template <class Within, class Behind>
  double iterate(Within within, Behind behind) {
    double before = work();
    world_.governor.pass_door(1);
    job_.take(), job_.give();
    within();
    pass(2);
    world_.governor.mark(1);
    behind();
    world_.governor.pass_door(1);  // closes it, and opens the next
    return work() - before;
  }
  void start_worker() {
    CHECK(world_.governor.park_others(1, 5000000000));
    world_.governor.unpark_others(1);
  }
  void start_program() {
    for (bool waits : {true, false}) world_.governor.await_turn_to_fork(1, waits);
  }
  void pass(uint64_t ms) { now_ += ms * kMs; }
  // Work as it is told, of the iteration that is under way too.
  double told() {
    uint64_t told[GS_PROGRESS_FIGURES];
    tell_progress(account(), world_.telemetry, kPage, now_, told);
    return static_cast<double>(told[4]) / 1e6;
  }
  uint64_t iteration_ms() { return account().iteration_kinds.kind(0).curve.duration_ns() / kMs; }
  uint64_t job_ms() { return account().curve.duration_ns() / kMs; }

 private:
  Account& account() { return world_.governor.account(1); }
  double work() { return account().iteration_kinds.work(account().recorder, false, {}); }

  uint64_t now_ = kMs;
  World world_{Policy::kZico, 64, false};
  Job job_{world_, 1};
};

void what_workers_take_to_start_is_work_of_its_own() {
  Epochs epochs;
  double workers = epochs.iterate(
      [&] {
        epochs.start_worker();
        epochs.pass(100);
      },
      [] {});
  double program = epochs.iterate(
      [&] {
        epochs.start_program();
        epochs.pass(30);
      },
      [] {});
  double checkpoint = epochs.iterate([] {}, [&] { epochs.pass(50); });
  double slow = epochs.iterate([&] { epochs.pass(2); }, [] {});  // who knows why
  CHECK(workers == 51 && program == 16 && checkpoint == 26 && slow == 1);
  CHECK(epochs.iteration_ms() == 2 && epochs.job_ms() == 2);
}

// Looks meanwhile see that it goes on.
void such_work_is_told_as_it_goes_on() {
  Epochs epochs;
  double before = 0, after = 0;
  auto goes_on = [&](uint64_t each_ms, double each) {
    for (int n = 0; n < 10; ++n) {
      double told = epochs.told();
      epochs.pass(each_ms);
      CHECK(std::abs(epochs.told() - told - each) < 1e-5);
    }
  };
  epochs.iterate(
      [&] {
        epochs.start_worker();
        epochs.pass(2);
        before = epochs.told();
        goes_on(10, 5);
      },
      [&] {
        after = epochs.told();
        epochs.pass(11);
        goes_on(7, 3.5);
      });
  CHECK(std::abs(after - before - 51) < 1e-5);
  epochs.iterate([] {},
                 [&] {
                   epochs.pass(11);
                   goes_on(7, 3.5);
                 });
}

}  // namespace

int main() {
  for (Policy policy : {Policy::kZico, Policy::kUnmanaged, Policy::kTemporal})
    a_fork_parks_the_others(policy);
  two_forks_of_a_job_at_once();
  a_fork_that_was_not_counted_ends_no_other();
  who_has_a_lock_is_given_memory_while_another_forks();
  for (int how : {0, 1, 2}) forks_one_after_the_other_stop_the_others_once(how);
  another_one_may_fork_at_once();
  who_forks_all_the_time_lets_the_others_go_on();
  two_that_fork_all_the_time_let_a_third_one_go_on();
  a_fork_stops_a_set_up();
  an_iteration_stops_where_it_allocates();
  who_was_stopped_goes_on_for_as_long();
  a_worker_of_an_iteration_does_not_stop();
  a_thread_that_has_not_entered_stops_too();
  for (bool computes : {false, true}) a_fork_does_not_wait_for_who_is_about_to_fork(computes);
  a_fork_does_not_wait_for_who_rests();
  who_comes_to_rest_is_seen_at_once();
  who_wakes_is_not_held_for_ever();
  who_wakes_beside_one_that_computes_goes_on();
  who_forks_does_not_hold_its_own_threads();
  whose_iteration_is_over_is_not_waited_for();
  what_was_waited_for_in_vain_is_not_again();
  who_rests_in_a_library_may_have_its_locks();
  for (bool computes : {false, true}) a_wait_to_fork_is_no_part_of_the_iteration(computes);
  what_workers_take_to_start_is_work_of_its_own();
  such_work_is_told_as_it_goes_on();
  puts("forks: ok");
}
