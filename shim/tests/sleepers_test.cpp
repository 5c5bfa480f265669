// A job that waits with a lock in hand, and one that sleeps until it gets that lock: the sleeper
// makes way. Each of these takes the seconds that the governor waits for, so all run at once.
#include <functional>
#include <semaphore>

#include "wedge.h"

namespace {

constexpr milliseconds kAWhile{200}, kLonger{8000}, kHope{12000};

// A lock as the interpreter takes it for a job, a semaphore: who has to wait for it rests.
struct Lock {
  Governor& governor;
  std::binary_semaphore free{1};

  void take(uint32_t id) {
    while (!free.try_acquire()) {
      governor.begin_rest(id);
      free.acquire();
      if (governor.end_rest(id)) return;
      free.release();
      governor.rest_on(id);
    }
  }
  void give() { free.release(); }
};

// Of a job whose other thread sleeps: it looks at something now and then.
struct Monitor {
  std::atomic<bool> ending{false};
  std::thread thread;

  Monitor(Governor& governor, uint32_t id, std::function<void()> look) {
    governor.thread_enters(id);
    thread = std::thread([this, &governor, id, look] {
      while (!ending) {
        governor.begin_rest(id);
        std::this_thread::sleep_for(milliseconds(2));
        if (!governor.end_rest(id)) governor.rest_on(id);
        look();
      }
      governor.thread_leaves(id);
    });
  }
  void end() { ending = true, thread.join(); }
};

void until(const std::function<bool()>& so) {
  for (int n = 0; n < 50000 && !so(); ++n) std::this_thread::sleep_for(milliseconds(1));
  CHECK(so());
}

// Job 1 waits for memory that job 2 has. That stays away as long as it sleeps, though there is room
// again, and comes back with every byte.
void who_waits_for_memory() {
  Wedge wedge;
  Telemetry& telemetry = wedge.w.telemetry;
  Lock lock{wedge.w.governor};
  lock.take(1);
  wedge.threads.emplace_back([&] {
    for (int n = 0; n < 10; ++n) wedge.one.take();
    while (!wedge.one.pages.empty()) wedge.one.give();
    std::this_thread::sleep_for(kAWhile);
    CHECK(telemetry.slot(2, kState) == kIsCopiedOut);
    lock.give();
    until([&] { return telemetry.slot(2, kCopiedOut) == 0; });
    wedge.one.end();
  });
  wedge.threads.emplace_back([&] {
    lock.take(2);
    CHECK(telemetry.slot(2, kCopiedOut) == 0);
    wedge.two.end();
  });
  wedge.join();
  CHECK(telemetry.slot(1, kCopiesOut) == 0 && telemetry.slot(2, kCopiesOut) == 1);
  CHECK(telemetry.slot(2, kLongestWaitNs) > 0);  // for its memory, once it was awake
  CHECK(telemetry.slot(2, kMemoryWaitNs) >= telemetry.slot(2, kLongestWaitNs));
}

// That may wake at any time, and is there when the job's memory is.
void beside_a_thread_that_sleeps_now_and_then() {
  Wedge wedge;
  Lock lock{wedge.w.governor};
  uint64_t* first = wedge.two.words(wedge.two.pages[0]);
  Monitor monitor(wedge.w.governor, 2, [first, mark = first[0]] { CHECK(first[1] == mark + 1); });
  lock.take(1);
  wedge.threads.emplace_back([&] {
    for (int n = 0; n < 10; ++n) wedge.one.take();
    lock.give();
    wedge.one.end();
  });
  wedge.threads.emplace_back([&] {
    lock.take(2);
    monitor.end();
    wedge.two.end();
  });
  wedge.join();
  CHECK(wedge.w.telemetry.slot(2, kCopiesOut) >= 1);
}

// Job 2 is in its iteration, with all that it claims, and sleeps for the lock until job 1 has done
// `work` with that in hand.
void while_the_other_sleeps(Policy policy, uint32_t claim, void (*work)(WritingJob&)) {
  World w(policy, 40);
  Lock lock{w.governor};
  std::vector<WritingJob> jobs = begun(w, 2);
  claims(jobs[1], claim, 0);
  w.governor.mark(2), w.governor.pass_door(2);
  for (uint32_t n = 0; n < claim; ++n) jobs[1].take();
  lock.take(1);
  std::thread first([&] {
    work(jobs[0]);
    lock.give();
    jobs[0].end();
  });
  std::thread second([&] {
    lock.take(2);
    jobs[1].end();
  });
  first.join(), second.join();
  CHECK(w.telemetry.slot(1, kCopiesOut) == 0 && w.telemetry.slot(2, kCopiesOut) == 1);
  CHECK_EMPTY(w.governor.check());
}

void who_waits_at_its_door() {
  while_the_other_sleeps(Policy::kTemporal, 18, [](WritingJob& job) {
    claims(job, 18, 0);
    job.iterate(18, 0);
  });
}

// Step by step, what it takes before its first iteration; job 2 comes back when that has ended.
void who_sets_up() {
  while_the_other_sleeps(Policy::kZico, 30, [](WritingJob& job) {
    for (int n = 0; n < 20; ++n) job.take();
  });
}

// As in an import, and in a second: it does not wait for longer than two.
void who_has_a_lock_that_is_known() {
  Wedge wedge;
  Governor& governor = wedge.w.governor;
  Lock lock{governor};
  lock.take(1);
  wedge.threads.emplace_back([&] {
    for (int tries = 5; tries > 0; --tries) {  // a machine that stalls may let the two seconds pass
      try {
        governor.charge(1, 10, true, 10 * kPage);
        governor.uncharge(1, 10);
        tries = 0;
      } catch (const OutOfMemory&) {
        CHECK(tries > 1);
      }
    }
    lock.give();
    wedge.one.end();
  });
  wedge.threads.emplace_back([&] {
    lock.take(2);
    wedge.two.end();
  });
  wedge.join();
  CHECK(wedge.w.telemetry.slot(2, kCopiesOut) == 1);
}

// Job 2 wakes while job 1 keeps what it has got; until that is given back it can't go on.
void who_has_woken_and_waits_is_not_iterating() {
  auto begun_at = std::chrono::steady_clock::now();
  Wedge wedge;
  Governor& governor = wedge.w.governor;
  std::binary_semaphore free{0};
  wedge.threads.emplace_back([&] {
    for (int n = 0; n < 10; ++n) wedge.one.take();
    free.release();
    std::this_thread::sleep_for(milliseconds(1500));
    wedge.one.end();
  });
  wedge.threads.emplace_back([&] {
    governor.begin_rest(2);
    free.acquire();
    CHECK(!governor.end_rest(2));
    auto woke_at = std::chrono::steady_clock::now();
    governor.rest_on(2);
    auto back_at = std::chrono::steady_clock::now();
    while (!wedge.two.pages.empty()) wedge.two.give();
    governor.mark(2), governor.pass_door(2);
    std::chrono::nanoseconds took{wedge.w.telemetry.slot(2, kLastIterationNs)};
    CHECK(took < std::chrono::steady_clock::now() - begun_at - (back_at - woke_at) / 2);
    wedge.two.end();
  });
  wedge.join();
}

// A sleep that blocks of other threads interrupt is none, nor one that is short.
void who_does_something_stays() {
  Wedge wedge;
  Governor& governor = wedge.w.governor;
  Monitor monitor(governor, 2, [&] { ++governor.account(2).allocations; });
  std::atomic<bool> has_it{false};
  wedge.threads.emplace_back([&] {
    for (int n = 0; n < 10; ++n) wedge.one.take();
    has_it = true;
    wedge.one.end();
  });
  governor.begin_rest(2);
  std::this_thread::sleep_for(kLonger);
  CHECK(governor.end_rest(2) && !has_it);
  monitor.end();
  CHECK(wedge.w.telemetry.slot(2, kCopiesOut) == 0);
  wedge.two.end();
  wedge.join();
}

// The third job's iterations end, so it is not for the sleeper that job 1 waits at its door.
void who_sleeps_beside_an_iteration_that_goes_on_stays() {
  World w(Policy::kTemporal, 40);
  std::vector<WritingJob> jobs = begun(w, 3);
  for (WritingJob& job : jobs) claims(job, 9, 0);
  jobs[1].take();
  w.governor.begin_rest(2);
  w.governor.mark(3), w.governor.pass_door(3);
  std::thread first([&] { jobs[0].iterate(9, 0); });
  for (milliseconds past{0}; past < kLonger; past += kAWhile) {
    jobs[2].take(), jobs[2].give();
    ++w.governor.account(3).allocations;
    std::this_thread::sleep_for(kAWhile);
  }
  CHECK(w.telemetry.slot(2, kCopiesOut) == 0);
  CHECK(w.governor.end_rest(2));
  for (WritingJob* job : {&jobs[2], &jobs[1]}) job->end();
  first.join();
  jobs[0].end();
  CHECK_EMPTY(w.governor.check());
}

// Nor for what the third one may still come to need, that job 1 waits for memory.
void who_sleeps_beside_a_claim_that_is_given_back_stays() {
  World w(Policy::kZico, 40);
  std::vector<WritingJob> jobs = begun(w, 3);
  w.permit_all(3);
  claims(jobs[1], 8, 0), claims(jobs[0], 29, 0), claims(jobs[2], 29, 0);
  for (uint32_t id : {2, 3, 1}) w.governor.mark(id), w.governor.pass_door(id);
  for (int n = 0; n < 8; ++n) jobs[1].take();
  for (int n = 0; n < 11; ++n) jobs[2].take();
  w.governor.begin_rest(2);
  std::atomic<uint32_t> taken{0};
  std::thread first([&] {
    for (; taken < 14; ++taken) jobs[0].take();
    jobs[0].end();
  });
  for (milliseconds past{0}; past < kLonger; past += kAWhile) {
    ++w.governor.account(3).allocations;
    std::this_thread::sleep_for(kAWhile);
  }
  CHECK(taken > 0 && taken < 14 && w.telemetry.slot(2, kCopiesOut) == 0);
  CHECK(w.governor.end_rest(2));
  jobs[2].end();
  first.join();
  jobs[1].end();
  CHECK_EMPTY(w.governor.check());
}

// Job 1 computes, and job 3 sets up: job 2 stays at its door, however long that takes.
void who_waits_at_its_door_stays_for_a_set_up_beside_others() {
  World w(Policy::kZico, 40);
  std::vector<WritingJob> jobs = begun(w, 3);
  const uint64_t holds[] = {16, 12, 10};
  for (WritingJob& job : jobs)
    while (job.pages.size() < holds[job.id - 1]) job.take();
  claims(jobs[1], 38, 12);
  std::thread second([&] {
    w.governor.mark(2), w.governor.pass_door(2);
    jobs[1].end();
  });
  std::thread third([&] {
    w.governor.charge(3, 6, false, 6 * kPage);
    w.governor.uncharge(3, 6);
    jobs[2].end();
  });
  until([&] {
    return w.telemetry.slot(2, kState) == kAtDoor &&
           w.telemetry.slot(3, kState) == kWaitingForMemory;
  });
  std::this_thread::sleep_for(kHope);
  for (uint32_t id : {2u, 3u}) CHECK(w.telemetry.slot(id, kCopiesOut) == 0);
  jobs[0].end();
  second.join(), third.join();
  CHECK(w.telemetry.slot(2, kOomCount) + w.telemetry.slot(3, kOomCount) == 0);
  CHECK_EMPTY(w.governor.check());
}

// Job 1 computes in no iteration, with what job 2 lacks in its own.
struct Computing {
  World w{Policy::kZico, 40};
  std::vector<WritingJob> jobs = begun(w, 2);
  std::atomic<bool> refused{false}, over{false};
  std::thread second;

  void begin() {
    while (jobs[0].pages.size() < 20) jobs[0].take();
    second = std::thread([&] {
      w.governor.mark(2), w.governor.pass_door(2);
      try {
        while (jobs[1].pages.size() < 30) jobs[1].take();
      } catch (const OutOfMemory&) {
        refused = true;
      }
      jobs[1].end();
      over = true;
    });
  }
  void end() {
    jobs[0].end();
    second.join();
    CHECK_EMPTY(w.governor.check());
  }
};

void what_a_job_that_computes_keeps_is_waited_for() {
  Computing c;
  c.begin();
  std::this_thread::sleep_for(kHope);
  CHECK(!c.over && c.w.telemetry.slot(2, kState) == kWaitingForMemory);
  c.end();
  CHECK(!c.refused && c.w.telemetry.slot(2, kOomCount) == 0);
}

// It begins to wait at its door: what it keeps leaves then, however long that took.
void who_has_computed_for_long_makes_way_at_its_door() {
  Computing c;
  c.begin();
  std::this_thread::sleep_for(kHope);
  c.w.governor.mark(1), c.w.governor.pass_door(1);
  c.end();
  CHECK(!c.refused && c.w.telemetry.slot(1, kCopiesOut) == 1);
}

// But not for ever, if it makes no block: it may be waiting for job 2.
void who_computes_for_too_long_is_not_waited_for() {
  Computing c;
  c.w.governor.longest_computing = milliseconds(100);
  c.begin();
  std::this_thread::sleep_for(kHope);
  CHECK(c.over && c.refused);
  c.end();
  CHECK(c.w.telemetry.slot(1, kCopiesOut) == 0);
}

// The first page to be copied out takes as long as a large job does.
struct SlowDevice final : Device {
  HostDevice host;
  std::atomic<bool> slow{true};

  char* reserve(size_t bytes, size_t page) override { return host.reserve(bytes, page); }
  void unmap(char* address) override { host.unmap(address); }
  bool copy_out(char* address, size_t bytes) override {
    if (slow.exchange(false)) std::this_thread::sleep_for(kHope);
    return host.copy_out(address, bytes);
  }
  void take_away(char* address, size_t bytes) override { host.take_away(address, bytes); }
  bool bring_back(char* address, size_t bytes) override { return host.bring_back(address, bytes); }
  void forget(char* address, size_t bytes) override { host.forget(address, bytes); }
};

// Two must leave for the third: what the first one takes to be copied out is no reason to refuse.
void what_is_copied_out_is_waited_for() {
  SlowDevice device;
  World w(Policy::kZico, 32, true, &device);
  std::vector<WritingJob> jobs = begun(w, 3);
  std::atomic<bool> refused{false};
  for (uint32_t i : {1u, 2u})
    while (jobs[i].pages.size() < 10) jobs[i].take();
  w.governor.mark(1), w.governor.pass_door(1);
  while (jobs[0].pages.size() < 10) jobs[0].take();
  auto wait_at_door = [&](uint32_t i) {
    w.governor.mark(i + 1), w.governor.pass_door(i + 1);
    jobs[i].end();
  };
  std::thread second(wait_at_door, 1u), third(wait_at_door, 2u);
  until([&] {
    return w.telemetry.slot(2, kState) == kAtDoor && w.telemetry.slot(3, kState) == kAtDoor;
  });
  try {
    w.governor.charge(1, 18, false, 18 * kPage);
    w.governor.uncharge(1, 18);
  } catch (const OutOfMemory&) {
    refused = true;
  }
  CHECK(!refused && !device.slow);
  CHECK(w.telemetry.slot(2, kCopiesOut) + w.telemetry.slot(3, kCopiesOut) == 2);
  jobs[0].end();
  second.join(), third.join();
  CHECK_EMPTY(w.governor.check());
}

// Job 3 is set aside, which takes long, while job 1 waits for what job 2 keeps, that computes.
void who_computes_while_another_is_copied_out_is_waited_for() {
  SlowDevice device;
  World w(Policy::kZico, 40, true, &device);
  std::vector<WritingJob> jobs = begun(w, 3);
  std::atomic<bool> refused{false}, over{false};
  while (jobs[1].pages.size() < 10) jobs[1].take();
  while (jobs[2].pages.size() < 4) jobs[2].take();
  claims(jobs[1], 10, 10), claims(jobs[2], 4, 4);
  w.governor.mark(1), w.governor.pass_door(1);
  std::thread third([&] {
    w.governor.mark(3), w.governor.pass_door(3);
    jobs[2].end();
  });
  std::thread first([&] {
    try {
      w.governor.charge(1, 32, false, 32 * kPage);
      w.governor.uncharge(1, 32);
    } catch (const OutOfMemory&) {
      refused = true;
    }
    jobs[0].end();
    over = true;
  });
  until([&] { return w.telemetry.slot(1, kState) == kWaitingForMemory; });
  std::this_thread::sleep_for(kHope);
  w.governor.set_aside(uint64_t{1} << 3);
  until([&] { return w.telemetry.slot(3, kCopiesOut) == 1; });
  std::this_thread::sleep_for(kAWhile);
  CHECK(!over);
  w.governor.set_aside(0);
  jobs[1].end();
  third.join(), first.join();
  CHECK(!refused && !device.slow);
  CHECK_EMPTY(w.governor.check());
}

}  // namespace

int main() {
  std::vector<std::thread> threads;
  for (auto test :
       {who_waits_for_memory, beside_a_thread_that_sleeps_now_and_then, who_waits_at_its_door,
        who_sets_up, who_has_a_lock_that_is_known, who_has_woken_and_waits_is_not_iterating,
        who_does_something_stays, who_sleeps_beside_an_iteration_that_goes_on_stays,
        who_sleeps_beside_a_claim_that_is_given_back_stays,
        who_waits_at_its_door_stays_for_a_set_up_beside_others,
        what_a_job_that_computes_keeps_is_waited_for,
        who_has_computed_for_long_makes_way_at_its_door,
        who_computes_for_too_long_is_not_waited_for, what_is_copied_out_is_waited_for,
        who_computes_while_another_is_copied_out_is_waited_for})
    threads.emplace_back(test);
  for (auto& t : threads) t.join();
  printf("sleepers: ok\n");
}
