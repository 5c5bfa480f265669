// Jobs that outgrow their claims together: one is copied out and comes back with every byte; nobody
// uses what has left; what can't leave ends as before.
#include <string>

#include "wedge.h"

namespace {

// `jobs` of them claim 19, then all want 36 of 40.
void all_outgrow_their_claims(uint32_t jobs) {
  World w(Policy::kZico, 40);
  for (uint32_t i = 0; i < jobs; ++i) w.governor.begin_job(0);
  w.permit_all(jobs);
  std::vector<std::thread> threads;
  for (uint32_t i = 1; i <= jobs; ++i)
    threads.emplace_back([&, i] {
      w.governor.thread_enters(i);
      WritingJob job{w, i};
      for (int n = 0; n < 12; ++n) job.iterate(n < 6 ? 19 : 36, 1);
      job.end();
      w.governor.thread_leaves(i);
    });
  for (auto& t : threads) t.join();
  CHECK(w.telemetry.header(kHeldPeak) <= 40 * kPage);
  CHECK(w.telemetry.header(kHeldTotal) == 0);
  for (uint32_t i = 1; i <= jobs; ++i) {
    CHECK(w.telemetry.slot(i, kIterations) == 12);
    CHECK(w.telemetry.slot(i, kCopiedOut) == 0);
  }
  CHECK_EMPTY(w.governor.check());
}

void two_that_outgrow_their_claims_at_once() {
  Wedge wedge;
  wedge.both_ask(16);
  CHECK(wedge.wait_for_leaver() == 1);
  wedge.join();
  CHECK(wedge.refused == 0);
  CHECK(wedge.w.telemetry.slot(1, kCopiesOut) == 1 && wedge.w.telemetry.slot(2, kCopiesOut) == 0);
}

// Job 2's door stays shut until job 1 is back, which needs one look of the sampler.
void who_left_in_its_iteration_comes_back_first() {
  Wedge wedge;
  std::atomic<uint64_t> back_at{0};
  wedge.threads.emplace_back([&] {
    for (int n = 0; n < 10; ++n) wedge.one.take();
    back_at = wedge.w.telemetry.slot(2, kIterations);
    wedge.one.end();
  });
  wedge.threads.emplace_back([&] {
    for (int n = 0; n < 10; ++n) wedge.two.take();
    while (!wedge.two.pages.empty()) wedge.two.give();
    // As fast as it can: were the door open, many iterations would fit before that look.
    for (int n = 0; n < 2000 && !back_at; ++n) wedge.two.iterate(18, 0);
    wedge.two.end();
  });
  wedge.join();
  CHECK(wedge.w.telemetry.slot(1, kCopiesOut) == 1);
  CHECK(back_at >= 1 && back_at <= 3);
}

void what_keeps_jobs_in(void (*keep)(Governor&, uint32_t id)) {
  Wedge wedge;
  for (uint32_t id : {1u, 2u}) keep(wedge.w.governor, id);
  wedge.both_ask(10);
  wedge.join();
  CHECK(wedge.refused == 1);
  CHECK(wedge.w.telemetry.slot(1, kCopiesOut) + wedge.w.telemetry.slot(2, kCopiesOut) == 0);
}

void a_second_thread(Governor& governor, uint32_t id) { governor.thread_enters(id); }

// Of torch's own threads, that computes with what the job holds.
void a_task(Governor& governor, uint32_t id) { governor.account(id).tasks = 1; }

// Torch's or an extension's thread waits for a job whose own one computes.
void a_thread_that_has_not_entered_is_no_other_one() {
  Wedge wedge;
  Governor& governor = wedge.w.governor;
  governor.has_entered = [](uint32_t) { return false; };
  wedge.both_ask(10);
  std::this_thread::sleep_for(milliseconds(300));  // it would have left after thirty
  for (uint32_t id : {1u, 2u}) {
    CHECK(wedge.w.telemetry.slot(id, kCopiesOut) == 0);
    governor.inspect(id, [](const Account& a) { CHECK(a.threads == a.waiting_threads + 1); });
  }
  for (uint32_t id : {1u, 2u}) governor.cancel(id);
  wedge.join();
  for (uint32_t id : {1u, 2u})
    governor.inspect(id, [](const Account& a) { CHECK(a.threads == 1); });
}

// Its second thread wakes while the job is away, and goes on when it is back.
void a_second_thread_that_rests_lets_a_job_leave() {
  Wedge wedge;
  Governor& governor = wedge.w.governor;
  std::atomic<bool> go_on{false}, awake{false};
  for (uint32_t id : {1u, 2u}) {
    governor.thread_enters(id);
    governor.begin_rest(id);
  }
  wedge.threads.emplace_back([&] {
    for (int n = 0; n < 10; ++n) wedge.one.take();
    wedge.one.end();
  });
  wedge.two_asks_and_stays(go_on);
  CHECK(wedge.wait_for_leaver() == 1);
  CHECK(governor.end_rest(2) && !governor.end_rest(1));
  std::thread sleeper([&] {
    governor.rest_on(1);
    awake = true;
    governor.thread_leaves(1);
  });
  std::this_thread::sleep_for(milliseconds(30));
  CHECK(!awake);
  go_on = true;
  sleeper.join();
  wedge.join();
  CHECK(governor.account(1).resting == 0 && governor.account(2).resting == 0);
}

// Job 1 is away with the thread whose answer job 2 waits for, asleep: they change places.
void who_needs_a_thread_that_is_away_makes_room() {
  Wedge wedge;
  Governor& governor = wedge.w.governor;
  std::atomic<bool> asked{false}, answered{false};
  governor.thread_enters(1);
  governor.begin_rest(1);
  wedge.threads.emplace_back([&] {
    for (int n = 0; n < 10; ++n) wedge.one.take();
    wedge.one.end();
  });
  wedge.threads.emplace_back([&] {
    for (int n = 0; n < 10; ++n) wedge.two.take();
    governor.begin_rest(2);
    asked = true;
    while (!answered) std::this_thread::sleep_for(milliseconds(1));
    if (!governor.end_rest(2)) governor.rest_on(2);
    wedge.two.end();
  });
  wedge.threads.emplace_back([&] {
    while (!asked) std::this_thread::sleep_for(milliseconds(1));
    if (!governor.end_rest(1)) governor.rest_on(1);
    answered = true;
    governor.thread_leaves(1);
  });
  wedge.join();
  CHECK(wedge.w.telemetry.slot(1, kCopiesOut) == 1 && wedge.w.telemetry.slot(2, kCopiesOut) == 1);
}

// Each job has a thread that rests and reads the job's first page in turn: it never reads what has
// left.
void threads_that_rest_and_read() {
  Wedge wedge;
  Governor& governor = wedge.w.governor;
  for (WritingJob* job : {&wedge.one, &wedge.two}) {
    governor.thread_enters(job->id);
    wedge.threads.emplace_back([&governor, job] {
      std::atomic<bool> ending{false};
      std::thread reader([&, first = job->words(job->pages[0])] {
        for (uint64_t mark = first[0]; !ending;) {
          governor.begin_rest(job->id);
          std::this_thread::sleep_for(std::chrono::microseconds(100));
          if (!governor.end_rest(job->id)) governor.rest_on(job->id);
          for (size_t i = 0; i < kPage / 8; ++i) CHECK(first[i] == mark + i);
        }
      });
      for (int n = 0; n < 16; ++n) job->take();
      while (job->pages.size() > 1) job->give();
      ending = true;
      reader.join();
      job->end();
    });
  }
  wedge.join();
  CHECK(wedge.w.telemetry.slot(1, kCopiesOut) + wedge.w.telemetry.slot(2, kCopiesOut) > 0);
}

// Job 1 holds more than it claimed, so it leaves. A finalizer that another job's thread runs may
// free what has left, and a thread that begins to work for the job waits until it is back.
void what_has_left_can_be_freed_and_is_not_used() {
  Wedge wedge;
  PageIndex freed = wedge.one.pages.front();
  std::atomic<bool> go_on{false}, entered{false};
  wedge.threads.emplace_back([&] {
    for (int n = 0; n < 10; ++n) wedge.one.take();
    wedge.one.pages.erase(wedge.one.pages.begin());
    wedge.one.written.erase(wedge.one.written.begin());
    wedge.one.end();
  });
  wedge.two_asks_and_stays(go_on);
  CHECK(wedge.wait_for_leaver() == 1);
  CHECK(wedge.w.telemetry.slot(1, kState) == kIsCopiedOut);
  CHECK(wedge.w.telemetry.slot(1, kCopiedOut) >= 20 * kPage);
  CHECK(wedge.w.governor.memory(1).copied_out_bytes == wedge.w.telemetry.slot(1, kCopiedOut));
  wedge.w.governor.unhold(freed, 1, 1, kOnly, true);
  CHECK_EMPTY(wedge.w.governor.check());
  wedge.w.governor.unless_copied_out(1, [] { CHECK(false); });
  std::thread late([&] {
    wedge.w.governor.thread_enters(1);
    entered = true;
    wedge.w.governor.thread_leaves(1);
  });
  std::this_thread::sleep_for(milliseconds(30));
  CHECK(!entered);
  go_on = true;
  wedge.join();
  late.join();
  wedge.w.governor.pool().address(freed)[0] = 1;  // the address can be used again
}

// Each fits alone, neither beside what the other keeps: the one at its door leaves until the other
// has ended, whether it has a profile or not.
void a_job_at_its_door_leaves(bool profiled) {
  World w(Policy::kZico, 40);
  std::vector<WritingJob> jobs = begun(w, 2);
  for (WritingJob& job : jobs)
    while (job.pages.size() < 15) job.take();
  std::vector<std::thread> threads;
  for (WritingJob& job : jobs) {
    if (profiled) claims(job, 30, 15);
    threads.emplace_back([&] {
      for (int n = 0; n < 5; ++n) job.iterate(30, 15);
      job.end();
      w.governor.thread_leaves(job.id);
    });
  }
  for (auto& t : threads) t.join();
  uint64_t copies = 0;
  for (uint32_t id : {1u, 2u}) {
    CHECK(w.telemetry.slot(id, kIterations) == 5);
    copies += w.telemetry.slot(id, kCopiesOut);
  }
  CHECK(copies == 1);
  CHECK_EMPTY(w.governor.check());
}

// What they take before their first iterations is more than there is, so who waits there leaves
// too; as soon as one ends it comes back, beside those who go on.
void jobs_that_set_up_at_once() {
  constexpr uint32_t kJobs = 6;
  World w(Policy::kZico, 40);
  std::vector<WritingJob> jobs = begun(w, kJobs);
  std::vector<std::thread> threads;
  for (WritingJob& job : jobs)
    threads.emplace_back([&] {
      while (job.pages.size() < 15) job.take();
      for (int n = 0; n < 5; ++n) job.iterate(30, 15);
      job.end();
      w.governor.thread_leaves(job.id);
    });
  for (auto& t : threads) t.join();
  for (uint32_t id = 1; id <= kJobs; ++id) {
    CHECK(w.telemetry.slot(id, kIterations) == 5);
    CHECK(w.telemetry.slot(id, kOomCount) == 0);
  }
  CHECK(w.telemetry.header(kHeldPeak) <= 40 * kPage);
  CHECK(w.telemetry.header(kHeldTotal) == 0);
  CHECK_EMPTY(w.governor.check());
}

// Jobs 1 and 2 set up, and neither can go on: one leaves. It is back as soon as there is room
// again, whatever job 3 does.
void who_left_in_its_set_up_comes_back_beside_an_iteration() {
  World w(Policy::kZico, 40);
  std::vector<WritingJob> jobs = begun(w, 2);
  std::atomic<bool> done[3] = {}, go_on{false};
  std::vector<std::thread> threads;
  for (WritingJob& job : jobs)
    while (job.pages.size() < 16) job.take();
  for (WritingJob& job : jobs)
    threads.emplace_back([&] {
      while (job.pages.size() < 26) job.take();
      done[job.id] = true;
      while (!go_on) std::this_thread::sleep_for(milliseconds(1));
      job.end();
    });
  auto until = [](const std::atomic<bool>& flag) {
    for (int n = 0; n < 5000 && !flag; ++n) std::this_thread::sleep_for(milliseconds(1));
    CHECK(flag);
  };
  while (!done[1] && !done[2]) std::this_thread::sleep_for(milliseconds(1));
  uint32_t left = done[1] ? 2 : 1;
  CHECK(w.telemetry.slot(left, kCopiesOut) == 1);
  w.governor.begin_job(0);
  w.governor.thread_enters(3);
  WritingJob three{w, 3};
  claims(three, 10, 0);
  w.governor.mark(3), w.governor.pass_door(3);
  while (three.pages.size() < 10) three.take();
  go_on = true;
  until(done[left]);  // job 3 is still in its iteration
  three.end();
  for (auto& t : threads) t.join();
  CHECK(w.telemetry.slot(1, kOomCount) + w.telemetry.slot(2, kOomCount) == 0);
  CHECK(w.telemetry.header(kHeldTotal) == 0);
  CHECK_EMPTY(w.governor.check());
}

// Job 1 is in its iteration, job 2 sets up, the others are at their doors: job 4 would make room
// for job 2, but it is job 1 that is to go on, for which job 3 is enough.
void nobody_leaves_for_a_set_up_beside_an_iteration() {
  World w(Policy::kTemporal, 40);
  std::vector<WritingJob> jobs = begun(w, 4);
  for (WritingJob& job : jobs)
    while (job.pages.size() < (job.id == 3 ? 17 : 5)) job.take();
  for (uint32_t id : {1u, 3u, 4u}) claims(jobs[id - 1], id == 1 ? 10 : 30, 0);
  std::atomic<bool> asked{false};
  std::vector<std::thread> threads;
  threads.emplace_back([&] {
    w.governor.mark(1), w.governor.pass_door(1);
    while (jobs[0].pages.size() < 10) jobs[0].take();
    while (!asked) std::this_thread::sleep_for(milliseconds(1));
    w.governor.charge(1, 11, false, 11 * kPage);
    CHECK(w.telemetry.slot(3, kCopiesOut) == 1 && w.telemetry.slot(4, kCopiesOut) == 0);
    w.governor.uncharge(1, 11);
    jobs[0].end();
  });
  auto waits = [&](uint32_t id, State where) {
    while (w.telemetry.slot(id, kState) != where) std::this_thread::sleep_for(milliseconds(1));
  };
  waits(1, kIterating);
  for (uint32_t id : {3u, 4u})
    threads.emplace_back([&, id] {
      w.governor.mark(id), w.governor.pass_door(id);
      jobs[id - 1].end();
    });
  for (uint32_t id : {3u, 4u}) waits(id, kAtDoor);
  threads.emplace_back([&] {
    w.governor.charge(2, 5, false, 5 * kPage);
    w.governor.uncharge(2, 5);
    jobs[1].end();
  });
  waits(2, kWaitingForMemory);
  asked = true;
  for (auto& t : threads) t.join();
  CHECK(w.telemetry.header(kHeldTotal) == 0);
  CHECK_EMPTY(w.governor.check());
}

// Job 1 outgrows what is there, so both others leave at their doors; neither fits beside what the
// other one is to bring back.
void two_that_are_both_away_come_back(Order order) {
  World w(Policy::kZico, 40);
  w.governor.set_order(order, 0);
  std::vector<WritingJob> jobs = begun(w, 3);
  for (WritingJob& job : jobs)
    while (job.pages.size() < (job.id == 1 ? 2 : 13)) job.take();
  for (uint32_t id : {2u, 3u}) claims(jobs[id - 1], 30, 13);
  std::vector<std::thread> threads;
  threads.emplace_back([&] {
    jobs[0].iterate(36, 2);
    jobs[0].end();
    w.governor.thread_leaves(1);
  });
  while (w.telemetry.slot(1, kState) != kWaitingForMemory)
    std::this_thread::sleep_for(milliseconds(1));
  for (uint32_t id : {2u, 3u})
    threads.emplace_back([&, id] {
      for (int n = 0; n < 2; ++n) jobs[id - 1].iterate(30, 13);
      jobs[id - 1].end();
      w.governor.thread_leaves(id);
    });
  for (auto& t : threads) t.join();
  for (uint32_t id : {2u, 3u}) CHECK(w.telemetry.slot(id, kCopiesOut) == 1);
  CHECK(w.telemetry.header(kHeldTotal) == 0);
  CHECK_EMPTY(w.governor.check());
}

// Who has a lock in hand waits for two seconds and goes on without, so its job's memory must stay.
void a_thread_that_will_not_wait_for_long_keeps_a_job_in() {
  Wedge wedge;
  wedge.w.governor.thread_enters(1);
  wedge.both_ask(10);
  bool given_up = false;
  try {
    wedge.w.governor.charge(1, 41, true, 41 * kPage);
  } catch (const OutOfMemory&) {
    given_up = true;
    CHECK(wedge.w.telemetry.slot(1, kCopiesOut) == 0);
  }
  wedge.w.governor.thread_leaves(1);
  CHECK(given_up);
  wedge.join();
}

// The time of an iteration is without the waits of its threads; waits at once count once, and those
// that began before it from its beginning.
void waits_of_two_threads_at_once() {
  Wedge wedge;
  constexpr milliseconds kComputes{150};
  std::vector<Job> shares{{wedge.w, 1}, {wedge.w, 1}};
  wedge.w.governor.thread_enters(1);
  for (Job& share : shares)
    wedge.threads.emplace_back([&] {
      for (int n = 0; n < 3; ++n) share.take();
    });
  std::this_thread::sleep_for(milliseconds(100));
  while (wedge.w.telemetry.slot(1, kWaits) < 2) std::this_thread::sleep_for(milliseconds(1));
  wedge.two.end();
  for (auto& t : wedge.threads) t.join();
  wedge.threads.clear();
  std::this_thread::sleep_for(kComputes);
  wedge.w.governor.mark(1), wedge.w.governor.pass_door(1);
  std::chrono::nanoseconds took{wedge.w.telemetry.slot(1, kLastIterationNs)};
  CHECK(took >= kComputes && took < std::chrono::minutes(1));
  for (Job& share : shares)
    while (!share.pages.empty()) share.give();
  wedge.one.end();
  wedge.join();
}

// Job 1 is away, and what job 2 keeps at its end leaves no room for it. A larger budget does.
void who_is_stranded_is_told_of_and_can_be_saved() {
  Wedge wedge;
  Governor& governor = wedge.w.governor;
  wedge.threads.emplace_back([&] {
    for (int n = 0; n < 10; ++n) wedge.one.take();
    wedge.one.end();
  });
  std::thread ends([&] {
    for (int n = 0; n < 10; ++n) wedge.two.take();
    std::this_thread::sleep_for(milliseconds(30));
    CHECK(governor.stranded(1).saved == 0);  // what job 2 has may come back
    governor.end_job(2);
  });
  CHECK(wedge.wait_for_leaver() == 1);
  ends.join();
  while (governor.stranded(1).saved == 0) std::this_thread::sleep_for(milliseconds(1));
  Stranded found = governor.stranded(1);
  CHECK(found.saved >= 20 && found.kept == 28 && found.budget == 40);
  CHECK(found.needs == found.kept + found.saved + 1);  // and the page that it asked for
  CHECK(governor.stranded(2).saved == 0 && !governor.abandon(2));
  std::this_thread::sleep_for(milliseconds(20));
  CHECK(governor.stranded(1).for_ns > found.for_ns);
  CHECK_EMPTY(governor.set_budget(found.needs + 10));
  while (wedge.w.telemetry.slot(1, kCopiedOut)) std::this_thread::sleep_for(milliseconds(1));
  std::this_thread::sleep_for(milliseconds(30));
  CHECK(governor.stranded(1).for_ns == 0 && !governor.abandon(1));
  for (auto& t : wedge.threads) t.join();
  wedge.threads.clear();
  while (!wedge.two.pages.empty()) wedge.two.give();
  wedge.join();
}

// A job that is given up counts for nothing, and no thread of it goes on, whatever room there is.
void who_is_given_up_stays_away() {
  static Wedge& wedge = *new Wedge;  // its thread waits there to the end
  static std::atomic<bool> went_on{false};
  Governor& governor = wedge.w.governor;
  governor.begin_job(0);
  governor.thread_enters(1);  // and one that sleeps
  governor.begin_rest(1);
  std::thread([] {
    for (int n = 0; n < 10; ++n) wedge.one.take();
    went_on = true;
  }).detach();
  std::thread ends([&] {
    for (int n = 0; n < 10; ++n) wedge.two.take();
    governor.end_job(2);
  });
  CHECK(wedge.wait_for_leaver() == 1);
  ends.join();
  while (!governor.abandon(1)) std::this_thread::sleep_for(milliseconds(1));
  CHECK(wedge.w.telemetry.slot(1, kMemoryWaitNs) > 0);
  CHECK(!governor.end_rest(1));
  for (bool rests : {true, false})
    std::thread([&governor = governor, rests] {
      if (rests)
        governor.rest_on(1);
      else
        governor.thread_enters(1);
      went_on = true;
    }).detach();
  CHECK(wedge.w.telemetry.slot(1, kState) == kEnded && governor.stranded(1).saved == 0);
  while (!wedge.two.pages.empty()) wedge.two.give();
  WritingJob three{wedge.w, 3};
  for (int n = 0; n < 4; ++n) three.iterate(40, 0);
  CHECK(three.pages.empty() && wedge.w.telemetry.slot(3, kOomCount) == 0);
  three.end();
  CHECK_EMPTY(governor.set_budget(30));
  CHECK(governor.pool_state().budget == 30);
  std::this_thread::sleep_for(milliseconds(50));
  CHECK(!went_on && wedge.w.telemetry.slot(1, kCopiedOut) >= 20 * kPage);
  CHECK_EMPTY(governor.check());
  wedge.w.ending = true;
  wedge.w.ticker.join();
}

void cancelling_brings_back_first() {
  Wedge wedge;
  wedge.both_ask(10);
  uint32_t left = wedge.wait_for_leaver();
  CHECK(left == 1);
  wedge.w.governor.cancel(left);
  wedge.join();
  CHECK(wedge.refused <= 1);
}

// No room for the copy: as without copying, one gets the error and the other goes on.
void a_copy_that_fails_ends_in_a_word() {
  std::string before = getenv("TMPDIR") ? getenv("TMPDIR") : "";
  setenv("TMPDIR", "/proc/self", 1);
  {
    Wedge wedge;
    wedge.both_ask(10);
    wedge.join();
    CHECK(wedge.refused == 1);
  }
  before.empty() ? unsetenv("TMPDIR") : setenv("TMPDIR", before.c_str(), 1);
}

}  // namespace

int main() {
  std::thread ten_seconds(what_keeps_jobs_in, a_second_thread);
  all_outgrow_their_claims(2);
  all_outgrow_their_claims(4);
  two_that_outgrow_their_claims_at_once();
  for (int n = 0; n < 5; ++n) who_left_in_its_iteration_comes_back_first();
  a_thread_that_has_not_entered_is_no_other_one();
  a_second_thread_that_rests_lets_a_job_leave();
  who_needs_a_thread_that_is_away_makes_room();
  what_keeps_jobs_in(a_task);
  for (int n = 0; n < 16; ++n) threads_that_rest_and_read();
  what_has_left_can_be_freed_and_is_not_used();
  a_job_at_its_door_leaves(true);
  a_job_at_its_door_leaves(false);
  jobs_that_set_up_at_once();
  who_left_in_its_set_up_comes_back_beside_an_iteration();
  nobody_leaves_for_a_set_up_beside_an_iteration();
  for (Order order : {Order::kFifo, Order::kFair}) two_that_are_both_away_come_back(order);
  a_thread_that_will_not_wait_for_long_keeps_a_job_in();
  waits_of_two_threads_at_once();
  who_is_stranded_is_told_of_and_can_be_saved();
  who_is_given_up_stays_away();
  cancelling_brings_back_first();
  ten_seconds.join();  // the next one changes the environment
  a_copy_that_fails_ends_in_a_word();
  printf("copying: ok\n");
}
