// Jobs as threads on a pool that is too small for their sum: the budget holds at every moment,
// every job ends, memory passes, doors and permits are kept, and wrong claims end in a word, not in
// a hang.
#include <random>

#include "../src/clock.h"
#include "world.h"

namespace {

// Four jobs of 40 pages each on 60: only an order that the check finds lets them all through.
void jobs_share_what_is_too_small_for_all(Policy policy, Permit permit = {true, 0, 0},
                                          Order order = Order::kFifo) {
  World w(policy, 60);
  w.governor.set_order(order, 1000000);
  std::vector<std::thread> threads;
  std::atomic<int> finished{0};
  for (int i = 0; i < 4; ++i) CHECK(w.governor.begin_job(1) == i + 1);
  w.permit_all(4, permit);
  for (uint32_t i = 1; i <= 4; ++i)
    threads.emplace_back([&, i] {
      Job job{w, i};
      std::mt19937 random(i);
      for (int n = 0; n < 150; ++n) job.iterate(n < 5 ? 40 : 30 + random() % 11, 2);
      job.end();
      ++finished;
    });
  for (auto& t : threads) t.join();
  CHECK(finished == 4);
  CHECK(w.telemetry.header(kHeldPeak) <= 60 * kPage);
  CHECK(w.telemetry.header(kHeldTotal) == 0);
  if (policy == Policy::kZico && !permit.by_forecast) {
    uint64_t waits = 0;
    for (uint32_t a = 1; a <= 4; ++a) waits += w.telemetry.slot(a, kWaits);
    CHECK(w.telemetry.header(kHeldPeak) > 44 * kPage);  // they really overlapped
    printf("governor: peak %llu pages of 60, %llu waits\n",
           static_cast<unsigned long long>(w.telemetry.header(kHeldPeak) / kPage),
           static_cast<unsigned long long>(waits));
  } else if (policy == Policy::kTemporal) {
    CHECK(w.telemetry.header(kHeldPeak) <= 46 * kPage);  // one iteration and three residues
  }
  CHECK_EMPTY(w.governor.check());
}

// Both claim 20, then both want 26 of 40: no order helps, and nobody may hang.
void wrong_claims_end() {
  World w(Policy::kZico, 40);
  for (int i = 0; i < 2; ++i) w.governor.begin_job(0);
  w.permit_all(2);
  std::atomic<int> refused{0}, finished{0};
  std::vector<std::thread> threads;
  for (uint32_t i = 1; i <= 2; ++i)
    threads.emplace_back([&, i] {
      Job job{w, i};
      try {
        for (int n = 0; n < 12; ++n) job.iterate(n < 6 ? 19 : 26, 1);
      } catch (const OutOfMemory&) {
        ++refused;
      }
      job.end();
      ++finished;
    });
  for (auto& t : threads) t.join();
  CHECK(finished == 2);
  CHECK(refused <= 1);
  CHECK_EMPTY(w.governor.check());
}

void a_permit_holds_the_door() {
  World w(Policy::kZico, 100);
  for (int i = 0; i < 2; ++i) w.governor.begin_job(0);
  Job a{w, 1}, b{w, 2};
  for (int n = 0; n < 2; ++n) a.iterate(20, 0);
  for (int n = 0; n < 1; ++n) {
    w.governor.mark(1), w.governor.pass_door(1);
  }
  // job 1 is in an iteration; job 2 has no profile and must wait for it to end
  std::atomic<bool> in{false};
  std::thread t([&] {
    b.iterate(20, 0);
    in = true;
    b.iterate(20, 0);
    b.iterate(20, 0);
  });
  std::this_thread::sleep_for(milliseconds(50));
  CHECK(!in);
  w.governor.set_permits({{2, 1, {true, 10, 0}}});
  w.governor.set_permits({{1, 2, {true, UINT64_MAX, 0}}});
  w.governor.end_job(1);
  t.join();
  CHECK(in);
  b.end();
}

// Job 2 may start once job 1 has made its 10th allocation; it looks when job 1 frees.
void a_permit_is_progress_of_the_other() {
  World w(Policy::kZico, 100);
  for (int i = 0; i < 2; ++i) w.governor.begin_job(0);
  Job one{w, 1}, two{w, 2};
  for (int n = 0; n < 3; ++n) one.iterate(20, 0);
  w.governor.set_curve(2, std::vector<uint32_t>(20, 20), std::vector<uint64_t>(20, 1), 0);
  w.governor.set_permits({{2, 1, {true, 10, 0}}});
  w.governor.mark(1), w.governor.pass_door(1);
  while (one.pages.size() < 9) one.take();
  std::atomic<bool> in{false};
  std::thread t([&] {
    two.iterate(20, 0);
    in = true;
  });
  std::this_thread::sleep_for(milliseconds(30));
  one.give();
  std::this_thread::sleep_for(milliseconds(30));
  CHECK(!in);
  one.take(), one.take();
  one.give();
  t.join();
  CHECK(in);
  one.end(), two.end();
}

// Job 2 may start in mid-iteration of job 1, where nobody frees anything and nobody ticks; who
// looks at doors sleeps when that is planned.
void a_planned_start_wakes_who_looks() {
  World w(Policy::kZico, 100, false);
  std::vector<uint64_t> times;
  for (uint64_t i = 0; i < 20; ++i) times.push_back(i * 5000000);
  for (uint32_t id : {1u, 2u}) {
    w.governor.begin_job(0);
    w.governor.set_curve(id, std::vector<uint32_t>(20, 20), times, 0);
  }
  w.governor.set_permits({{2, 1, {true, 10, 0}}});
  std::atomic<bool> in{false}, looked{false};
  std::thread looks([&] {
    w.governor.look_at_doors_until(now_ns() + 3000000000);
    looked = true;
  });
  std::this_thread::sleep_for(milliseconds(20));
  Job one{w, 1}, two{w, 2};
  w.governor.mark(1), w.governor.pass_door(1);
  std::thread opens([&] {
    two.iterate(20, 0);
    in = true;
  });
  while (w.telemetry.slot(2, kState) != kAtDoor) std::this_thread::sleep_for(milliseconds(1));
  while (one.pages.size() < 12) one.take();
  while (!in && !looked) std::this_thread::sleep_for(milliseconds(1));
  CHECK(!looked);
  looks.join(), opens.join();
  one.end(), two.end();
}

// Jobs 1 and 2 overlap without a gap. Job 3, which must run alone, gets its turn all the same.
void two_that_overlap_let_a_third_in() {
  World w(Policy::kZico, 100);
  for (int i = 0; i < 3; ++i) w.governor.begin_job(0);
  for (uint32_t id : {1, 2})
    w.governor.set_curve(id, std::vector<uint32_t>(5, 5), std::vector<uint64_t>(5, 1), 0);
  std::atomic<bool> in{false}, ending{false};
  std::vector<std::thread> threads;
  for (uint32_t id : {1u, 2u})
    threads.emplace_back([&, id] {
      Job job{w, id};
      while (!ending) {
        w.governor.mark(id), w.governor.pass_door(id);
        while (job.pages.size() < 5) job.take();
        std::this_thread::sleep_for(milliseconds(id));
        while (!job.pages.empty()) job.give();
      }
      job.end();
    });
  std::this_thread::sleep_for(milliseconds(20));
  threads.emplace_back([&] {
    Job job{w, 3};
    job.iterate(5, 0);
    in = true;
    job.end();
  });
  for (int n = 0; n < 500 && !in; ++n) std::this_thread::sleep_for(milliseconds(10));
  CHECK(in);
  ending = true;
  for (auto& t : threads) t.join();
}

// Job 3, which must run alone, has asked while job 1 is in an iteration: job 2, which fits beside
// that, gets no new one before it.
void who_asks_after_one_that_must_be_alone_waits() {
  World w(Policy::kZico, 100);
  for (int i = 0; i < 3; ++i) w.governor.begin_job(0);
  for (uint32_t id : {1, 2})
    w.governor.set_curve(id, std::vector<uint32_t>(5, 5), std::vector<uint64_t>(5, 1), 0);
  w.governor.mark(1), w.governor.pass_door(1);
  std::atomic<bool> alone{false}, in{false};
  auto at_door = [&](uint32_t id) { return w.telemetry.slot(id, kState) == kAtDoor; };
  std::thread third([&] {
    w.governor.mark(3), w.governor.pass_door(3);
    CHECK(!in);
    alone = true;
    w.governor.end_job(3);
  });
  while (!at_door(3)) std::this_thread::yield();
  std::thread second([&] {
    w.governor.mark(2), w.governor.pass_door(2);
    in = true;
    CHECK(alone);
    w.governor.end_job(2);
  });
  while (!in && !at_door(2)) std::this_thread::yield();
  CHECK(!in && !alone);
  w.governor.end_job(1);
  third.join(), second.join();
}

// Two threads of job 2 allocate while its door is shut, and job 3 comes in between: neither goes on
// before the door opens, then both do, though job 3 asked before the second.
void the_door_is_shut_for_each_thread() {
  World w(Policy::kZico, 100);
  for (int i = 0; i < 3; ++i) w.governor.begin_job(0);
  w.governor.mark(1), w.governor.pass_door(1);  // not profiled: alone
  w.governor.mark(2), w.governor.mark(3);
  std::atomic<int> in{0};
  std::vector<std::thread> threads;
  auto come = [&](uint32_t id, uint32_t waiting) {
    threads.emplace_back([&, id] {
      w.governor.pass_door(id);
      if (id == 2) ++in;
    });
    for (uint32_t now = 0; now < waiting;)
      w.governor.inspect(id, [&](const Account& a) { now = a.waiting_threads; });
  };
  come(2, 1), come(3, 1), come(2, 2);
  CHECK(in == 0);
  w.governor.end_job(1);
  threads[0].join(), threads[2].join();
  CHECK(w.telemetry.slot(2, kIterations) == 0);
  w.governor.end_job(3);
  threads[1].join();
  w.governor.mark(2), w.governor.pass_door(2);
  CHECK(w.telemetry.slot(2, kIterations) == 1);
  w.governor.end_job(2);
}

void cancel_ends_a_wait() {
  World w(Policy::kZico, 16);
  for (int i = 0; i < 2; ++i) w.governor.begin_job(0);
  Job a{w, 1};
  a.iterate(4, 0);
  w.governor.mark(1), w.governor.pass_door(1);
  std::atomic<bool> opened{false};
  std::thread t([&] {
    Job b{w, 2};
    w.governor.mark(2), w.governor.pass_door(2);  // not profiled: waits for job 1
    opened = true;
  });
  std::this_thread::sleep_for(milliseconds(30));
  CHECK(!opened);
  w.governor.cancel(2);
  t.join();
  CHECK(opened);
}

void who_has_caught_an_interrupt_waits_again() {
  World w(Policy::kZico, 16);
  for (int i = 0; i < 2; ++i) w.governor.begin_job(0);
  Job a{w, 1};
  a.iterate(4, 0);
  w.governor.mark(1), w.governor.pass_door(1);
  w.governor.cancel(2);
  w.governor.uncancel(2);
  std::atomic<bool> opened{false};
  std::thread t([&] {
    w.governor.mark(2), w.governor.pass_door(2);
    opened = true;
  });
  std::this_thread::sleep_for(milliseconds(30));
  CHECK(!opened);
  w.governor.end_job(1);
  t.join();
  CHECK(opened);
}

// Whatever the job does before its waiting thread runs again.
void a_wait_that_was_interrupted_is_no_refusal() {
  World w(Policy::kZico, 16);
  for (int i = 0; i < 2; ++i) w.governor.begin_job(0);
  w.governor.charge(1, 16, true, kPage);
  std::string why;
  std::thread t([&] {
    try {
      w.governor.charge(2, 4, true, kPage);
    } catch (const OutOfMemory& e) {
      why = e.what();
    }
  });
  while (w.telemetry.slot(2, kState) != kWaitingForMemory)
    std::this_thread::sleep_for(milliseconds(1));
  w.governor.cancel(2);
  w.governor.uncancel(2);
  t.join();
  CHECK(why == "gpushare: interrupted while waiting for memory");
  CHECK(w.telemetry.slot(2, kRefusal) == 0);
}

// Two threads of one budget: the one waits, the other frees; how long until the first goes on.
void waking_is_quick() {
  World w(Policy::kZico, 16);
  for (int i = 0; i < 2; ++i) w.governor.begin_job(0);
  w.permit_all(2);
  std::vector<std::thread> threads;
  for (uint32_t i = 1; i <= 2; ++i)
    threads.emplace_back([&, i] {
      Job job{w, i};
      for (int n = 0; n < 300; ++n) job.iterate(13, 0);
      job.end();
    });
  for (auto& t : threads) t.join();
  CHECK(w.telemetry.slot(1, kIterations) == 300 && w.telemetry.slot(2, kIterations) == 300);
}

// Job 1 needs 30 of 40 pages and keeps 2. Job 2 may set up with 10 (one less beside an iteration:
// the headroom); for more it waits until job 1 has ended, and job 1 goes on meanwhile.
void a_set_up_leaves_the_others_their_room() {
  World w(Policy::kZico, 40);
  for (int i = 0; i < 2; ++i) w.governor.begin_job(0);
  Job one{w, 1}, two{w, 2};
  for (int n = 0; n < 3; ++n) one.iterate(30, 2);
  for (int n = 0; n < 9; ++n) two.take();
  std::atomic<bool> got{false};
  std::thread t([&] {
    while (two.pages.size() < 12) two.take();
    got = true;
    two.end();
  });
  for (int n = 0; n < 20; ++n) one.iterate(30, 2);
  std::this_thread::sleep_for(milliseconds(1300));  // longer than a wedge is watched
  CHECK(!got);
  CHECK(w.telemetry.slot(2, kState) == kWaitingForMemory);
  one.end();
  t.join();
  CHECK(got);
}

// Where job 1 ends its first iteration and begins the one that is measured, job 2 may not set up
// with what that needs.
void a_set_up_waits_between_first_iterations() {
  World w(Policy::kZico, 40);
  for (int i = 0; i < 2; ++i) w.governor.begin_job(1);
  Job one{w, 1}, two{w, 2};
  one.iterate(30, 2);
  std::atomic<bool> got{false};
  std::thread t([&] {
    w.governor.charge(2, 20, false, 20 * kPage);
    got = true;
    DeviceWork none;
    for (int n = 0; n < 20; ++n) two.pages.push_back(w.governor.hold_range(1, 2, 0, none));
    two.end();
  });
  while (w.telemetry.slot(2, kState) != kWaitingForMemory) std::this_thread::yield();
  for (int n = 0; n < 3; ++n) one.iterate(30, 2);
  CHECK(!got);
  one.end();
  t.join();
  CHECK(got);
}

// Two first iterations that don't fit side by side, with nothing known of either: the graph's first
// node puts them at the door one after the other, and what the other sets up waits meanwhile.
void first_iterations_take_turns() {
  World w(Policy::kZico, 40);
  std::vector<Job> jobs;
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i) jobs.push_back({w, static_cast<uint32_t>(w.governor.begin_job(1))});
  for (Job& j : jobs)
    threads.emplace_back([&] {
      while (j.pages.size() < 4) j.take();
      for (int n = 0; n < 8; ++n) {
        if (n == 0)
          w.governor.note_graph(j.id), w.governor.note_graph(j.id);
        else
          w.governor.mark(j.id);
        w.governor.pass_door(j.id);
        while (j.pages.size() < 30) j.take();
        std::this_thread::sleep_for(milliseconds(2));
        while (j.pages.size() > 4) j.give();
      }
      j.end();
    });
  for (auto& t : threads) t.join();
  for (uint32_t id : {1, 2}) CHECK(w.telemetry.slot(id, kIterations) == 8);
}

// What job 2 takes while job 1 is being measured could be what job 1 needs.
void a_set_up_waits_for_a_profile() {
  World w(Policy::kZico, 40);
  for (int i = 0; i < 2; ++i) w.governor.begin_job(0);
  Job one{w, 1}, two{w, 2};
  std::atomic<bool> got{false};
  w.governor.mark(1), w.governor.pass_door(1);
  std::thread t([&] {
    while (two.pages.size() < 10) two.take();
    got = true;
  });
  while (one.pages.size() < 20) one.take();
  std::this_thread::sleep_for(milliseconds(50));
  CHECK(two.pages.empty());
  while (one.pages.size() < 30) one.take();
  while (!one.pages.empty()) one.give();
  while (!got) one.iterate(30, 0);
  one.end();
  t.join();
  two.end();
}

// Job 2 would fit alone, but not beside what job 1 keeps: its door opens when job 1 has ended.
void a_job_waits_for_a_place() {
  World w(Policy::kZico, 40);
  for (int i = 0; i < 2; ++i) w.governor.begin_job(0);
  Job one{w, 1}, two{w, 2};
  for (int n = 0; n < 3; ++n) one.iterate(20, 15);
  w.governor.set_curve(2, std::vector<uint32_t>(30, 30), std::vector<uint64_t>(30, 1), 1);
  std::atomic<bool> done{false};
  std::thread t([&] {
    two.iterate(30, 1);
    done = true;
    two.end();
  });
  std::this_thread::sleep_for(milliseconds(30));
  for (int n = 0; n < 20; ++n) one.iterate(20, 15);  // nobody makes way for job 2 in vain
  CHECK(!done);
  one.end();
  t.join();
  CHECK(done);
}

// Each fits alone, neither beside the other's residue: the later one is refused, with the figures.
void two_that_exclude_each_other() {
  World w(Policy::kZico, 40);
  for (int i = 0; i < 2; ++i) w.governor.begin_job(0);
  std::vector<Job> jobs = {{w, 1}, {w, 2}};
  for (Job& j : jobs)
    while (j.pages.size() < 15) j.take();
  for (Job& j : jobs) {
    w.governor.set_curve(j.id, std::vector<uint32_t>(30, 30), std::vector<uint64_t>(30, 1), 15);
  }
  std::atomic<int> refused{0};
  std::vector<std::thread> threads;
  for (Job& j : jobs)
    threads.emplace_back([&] {
      try {
        j.iterate(30, 15);
      } catch (const OutOfMemory&) {
        refused += static_cast<int>(j.id);
      }
      j.end();
    });
  for (auto& t : threads) t.join();
  CHECK(refused == 2);
  CHECK(w.telemetry.slot(2, kRefusal) == kTooLargeBesideOthers);
  CHECK(w.telemetry.slot(2, kNeedsAtLeast) == 30 * kPage);
  CHECK(w.telemetry.slot(2, kOthersKeep) == 15 * kPage);
}

// A job that has no profile and does not fit beside the others' residues can't be let wait: what it
// holds already may keep the others from running.
void a_profile_that_does_not_fit_beside_the_others() {
  World w(Policy::kZico, 40);
  for (int i = 0; i < 2; ++i) w.governor.begin_job(0);
  Job one{w, 1}, two{w, 2};
  for (int n = 0; n < 3; ++n) one.iterate(20, 15);
  std::atomic<bool> ending{false};
  std::thread t([&] {
    while (!ending) one.iterate(20, 15);
    one.end();
  });
  bool refused = false;
  try {
    two.iterate(30, 1);
  } catch (const OutOfMemory& e) {
    refused = true;
  }
  CHECK(refused);
  CHECK(w.telemetry.slot(2, kRefusal) == kTooLargeBesideOthers);
  two.end();
  ending = true;
  t.join();
}

// A door never waits for the scheduler: without a permit it opens when that is safe.
void no_permit_is_no_wait() {
  World w(Policy::kZico, 100);
  for (int i = 0; i < 2; ++i) w.governor.begin_job(0);
  Job one{w, 1}, two{w, 2};
  for (int n = 0; n < 2; ++n) one.iterate(20, 0), w.governor.mark(1), w.governor.pass_door(1);
  w.governor.set_curve(2, std::vector<uint32_t>(20, 20), std::vector<uint64_t>(20, 1), 0);
  two.iterate(20, 0);  // beside job 1's open iteration
  CHECK(w.telemetry.slot(2, kPythonGrants) == 0);
}

// A lock in hand that others may want: all of the budget may be taken, headroom included; alone
// there is nobody to wait for; beside others it waits for what they free, but not for ever.
void no_wait_draws_on_the_headroom_and_waits_a_little() {
  World w(Policy::kZico, 64);
  for (int i = 0; i < 2; ++i) w.governor.begin_job(0);
  Job one{w, 1}, two{w, 2};
  CHECK(w.governor.try_charge(1, 64, true));
  CHECK(!w.governor.try_charge(2, 1, true));
  std::thread t([&] {
    std::this_thread::sleep_for(milliseconds(50));
    w.governor.uncharge(1, 4);
  });
  w.governor.charge(2, 4, true, kPage);
  t.join();
  CHECK(w.telemetry.slot(2, kWaits) == 1);
  bool refused = false;
  try {
    w.governor.charge(2, 1, true, kPage);
  } catch (const OutOfMemory&) {
    refused = true;
  }
  CHECK(refused);
  w.governor.uncharge(1, 60);
  w.governor.end_job(1);
  CHECK(w.governor.try_charge(2, 60, true));
  refused = false;
  try {
    w.governor.charge(2, 1, true, kPage);
  } catch (const OutOfMemory&) {
    refused = true;
  }
  CHECK(refused);
  CHECK(w.telemetry.slot(2, kWaits) == 2);
  w.governor.uncharge(2, 64);
}

// Jobs iterate while the budget goes up and down: each cut comes, and none is ever exceeded (the
// world's ticker looks).
void the_budget_changes_while_jobs_run() {
  World w(Policy::kZico, 120);
  std::vector<std::thread> threads;
  std::atomic<int> finished{0};
  for (int i = 0; i < 4; ++i) w.governor.begin_job(1);
  w.permit_all(4);
  for (uint32_t i = 1; i <= 4; ++i)
    threads.emplace_back([&, i] {
      Job job{w, i};
      for (int n = 0; n < 400; ++n) job.iterate(40, 2);
      job.end();
      ++finished;
    });
  uint64_t cuts = 0, raises = 0;
  for (int n = 0; finished < 4; ++n) {
    uint64_t wanted = n % 2 ? 60 : 120;
    if (!w.governor.set_budget(wanted).empty()) continue;
    for (int wait = 0; wait < 1000 && w.governor.pool_state().budget != wanted; ++wait)
      std::this_thread::sleep_for(milliseconds(1));
    CHECK(w.governor.pool_state().budget == wanted);
    ++(n % 2 ? cuts : raises);
  }
  for (auto& t : threads) t.join();
  CHECK(cuts > 2 && raises > 2);
  CHECK(w.telemetry.header(kHeldPeak) > 60 * kPage);
  CHECK_EMPTY(w.governor.set_budget(10));
  CHECK_EMPTY(w.governor.check());
  CHECK(w.governor.pool().backed() <= 10);  // the rest went back to the system
}

void a_budget_that_the_jobs_do_not_fit_is_refused() {
  World w(Policy::kZico, 100);
  for (int i = 0; i < 2; ++i) w.governor.begin_job(0);
  Job one{w, 1}, two{w, 2};
  w.governor.set_curve(1, std::vector<uint32_t>(40, 40), std::vector<uint64_t>(40, 1), 10);
  w.governor.set_curve(2, std::vector<uint32_t>(30, 30), std::vector<uint64_t>(30, 1), 20);
  for (int n = 0; n < 10; ++n) one.take(), two.take(), two.take(), two.take();
  CHECK(w.governor.set_budget(39) ==
        "the budget can't be 0.2 MiB: the jobs need at least 0.2 MiB");  // 40 pages for one alone
  CHECK(!w.governor.set_budget(0).empty());
  CHECK(!w.governor.set_budget(100 * 16).empty());
  CHECK(w.governor.set_budget(1 << 19) ==
        "the budget can't be 2.00 GiB: at the start addresses were reserved for 3.1 MiB");
  CHECK(w.governor.pool_state().budget == 100);
  CHECK_EMPTY(w.governor.set_budget(40));
  CHECK(w.governor.pool_state().budget == 40);
  one.end();
  CHECK(!w.governor.set_budget(29).empty());  // what the other keeps
  CHECK_EMPTY(w.governor.set_budget(200));
  CHECK(w.governor.pool_state().budget == 200);
  two.end();
}

// Its optimizer makes its state in it: it has fewer allocations, took long, and may hold more.
void the_first_iteration_of_a_known_job_is_of_no_kind(uint64_t peak) {
  World w(Policy::kZico, 100);
  w.governor.begin_job(1);
  Job one{w, 1};
  w.governor.set_curve(1, std::vector<uint32_t>(40, 40), std::vector<uint64_t>(40, 1), 10, 1000);
  one.iterate(peak, 10);
  for (int n = 0; n < 3; ++n) one.iterate(40, 10);
  one.end();
  CHECK(w.telemetry.slot(1, kIterations) == 4 && w.telemetry.slot(1, kIterationKinds) == 1);
  CHECK(w.governor.account(1).curve.claim(0) == std::max<uint64_t>(peak, 40));
  CHECK(w.governor.account(1).iteration_kinds.kind(0).seen == 3);
}

// Open iterations that need more than the new budget end in the old one, and a third does not start
// beside them.
void a_cut_waits_for_open_iterations() {
  World w(Policy::kZico, 150);
  for (int i = 0; i < 3; ++i) w.governor.begin_job(0);
  w.permit_all(3);
  Job one{w, 1}, two{w, 2}, three{w, 3};
  for (uint32_t id : {1u, 2u, 3u})
    w.governor.set_curve(id, std::vector<uint32_t>(45, 45), std::vector<uint64_t>(45, 1), 0);
  for (Job* j : {&one, &two}) {
    w.governor.mark(j->id), w.governor.pass_door(j->id);
    for (int n = 0; n < 40; ++n) j->take();
  }
  CHECK_EMPTY(w.governor.set_budget(60));
  CHECK(w.governor.pool_state().budget == 150);
  two.take();  // it goes on
  std::thread third([&] { three.iterate(45, 0); });
  while (w.telemetry.slot(3, kState) != kAtDoor) std::this_thread::sleep_for(milliseconds(1));
  while (!two.pages.empty()) two.give();
  two.end();
  CHECK(w.governor.pool_state().budget == 60);
  while (!one.pages.empty()) one.give();
  one.end();
  third.join();
  three.end();
}

// What open iterations come to keep has no room in the smaller budget that is waited for.
void a_cut_that_jobs_outgrow_is_taken_back() {
  World w(Policy::kZico, 150);
  for (int i = 0; i < 2; ++i) w.governor.begin_job(0);
  w.permit_all(2);
  Job one{w, 1}, two{w, 2};
  for (uint32_t id : {1u, 2u})
    w.governor.set_curve(id, std::vector<uint32_t>(45, 45), std::vector<uint64_t>(45, 1), 0);
  for (Job* j : {&one, &two}) {
    w.governor.mark(j->id), w.governor.pass_door(j->id);
    for (int n = 0; n < 40; ++n) j->take();
  }
  CHECK_EMPTY(w.governor.set_budget(60));
  CHECK(w.telemetry.header(kWantedBudget) == 60 * kPage);
  std::vector<std::thread> doors;
  for (Job* j : {&one, &two}) {
    CHECK(w.governor.pool_state().cuts_given_up == 0);
    while (j->pages.size() > 35) j->give();
    doors.emplace_back([&w, j] { w.governor.mark(j->id), w.governor.pass_door(j->id); });
    std::this_thread::sleep_for(milliseconds(20));
  }
  for (std::thread& door : doors) door.join();
  PoolState after = w.governor.pool_state();
  CHECK(after.cuts_given_up == 1 && after.cut_needs >= 70 && after.budget == 150);
  CHECK(w.telemetry.header(kWantedBudget) == 150 * kPage);
  for (Job* j : {&one, &two}) {
    while (!j->pages.empty()) j->give();
    j->end();
  }
}

}  // namespace

int main() {
  // Each waits for ten seconds.
  std::thread waiting[] = {std::thread(wrong_claims_end), std::thread(two_that_exclude_each_other),
                           std::thread(a_profile_that_does_not_fit_beside_the_others)};
  jobs_share_what_is_too_small_for_all(Policy::kZico);
  jobs_share_what_is_too_small_for_all(Policy::kTemporal);
  jobs_share_what_is_too_small_for_all(Policy::kTemporal, {true, 0, 0}, Order::kFair);
  for (Order order : {Order::kFifo, Order::kFair, Order::kRanked})
    jobs_share_what_is_too_small_for_all(Policy::kZico, {true, 0, 0, true}, order);
  a_permit_holds_the_door();
  a_permit_is_progress_of_the_other();
  a_planned_start_wakes_who_looks();
  two_that_overlap_let_a_third_in();
  who_asks_after_one_that_must_be_alone_waits();
  the_door_is_shut_for_each_thread();
  cancel_ends_a_wait();
  who_has_caught_an_interrupt_waits_again();
  a_wait_that_was_interrupted_is_no_refusal();
  waking_is_quick();
  a_set_up_leaves_the_others_their_room();
  first_iterations_take_turns();
  a_set_up_waits_between_first_iterations();
  a_set_up_waits_for_a_profile();
  a_job_waits_for_a_place();
  no_permit_is_no_wait();
  no_wait_draws_on_the_headroom_and_waits_a_little();
  the_budget_changes_while_jobs_run();
  a_budget_that_the_jobs_do_not_fit_is_refused();
  for (uint64_t peak : {20u, 60u}) the_first_iteration_of_a_known_job_is_of_no_kind(peak);
  a_cut_waits_for_open_iterations();
  a_cut_that_jobs_outgrow_is_taken_back();
  for (auto& t : waiting) t.join();
  printf("governor: ok\n");
}
