// Jobs that know their bytes, and two of them that can't both go on.
#pragma once

#include "world.h"

// A job whose pages carry a pattern of its own, which it looks for when it gives them up.
struct WritingJob : Job {
  using Job::Job;
  uint64_t next = 0;
  std::vector<uint64_t> written = {};

  uint64_t* words(PageIndex page) {
    return reinterpret_cast<uint64_t*>(w.governor.pool().address(page));
  }
  void take() override {
    Job::take();
    uint64_t mark = (uint64_t{id} << 32) + ++next;
    for (size_t i = 0; i < kPage / 8; ++i) words(pages.back())[i] = mark + i;
    written.push_back(mark);
  }
  void give() override {
    for (size_t i = 0; i < kPage / 8; ++i) CHECK(words(pages.back())[i] == written.back() + i);
    written.pop_back();
    Job::give();
  }
};

// Of the first ids, begun; a thread works for each.
inline std::vector<WritingJob> begun(World& w, uint32_t jobs) {
  std::vector<WritingJob> found;
  for (uint32_t id = 1; id <= jobs; ++id) {
    w.governor.begin_job(0);
    w.governor.thread_enters(id);
    found.emplace_back(w, id);
  }
  return found;
}

// It holds `most` from its first allocation on, then what is left at its door.
inline void claims(const WritingJob& job, uint32_t most, uint64_t residue) {
  job.w.governor.set_curve(job.id, std::vector<uint32_t>(most, most),
                           std::vector<uint64_t>(most, 1), residue);
}

// Two open iterations of which job 1 holds 20 and job 2 holds 18 of 40, each asking for `more`.
struct Wedge {
  World w{Policy::kZico, 40};
  WritingJob one{w, 1}, two{w, 2};
  std::atomic<int> refused{0};
  std::vector<std::thread> threads;

  Wedge() {
    for (int i = 0; i < 2; ++i) w.governor.begin_job(0);
    w.permit_all(2);
    for (WritingJob* j : {&one, &two}) claims(*j, 18, 0);
    for (WritingJob* j : {&one, &two}) {
      w.governor.mark(j->id), w.governor.pass_door(j->id);
      w.governor.thread_enters(j->id);
      for (int n = 0; n < 18; ++n) j->take();
    }
    one.take(), one.take();  // the headroom
  }
  void both_ask(uint64_t more) {
    for (WritingJob* j : {&one, &two})
      threads.emplace_back([&, j, more] {
        try {
          for (uint64_t n = 0; n < more; ++n) j->take();
        } catch (const OutOfMemory&) {
          ++refused;
        }
        while (!j->pages.empty()) j->give();
        w.governor.mark(j->id), w.governor.pass_door(j->id);
        j->end();
      });
  }
  // It has its pages once job 1 has left, and keeps them until it is told to go on.
  void two_asks_and_stays(const std::atomic<bool>& go_on) {
    threads.emplace_back([&] {
      for (int n = 0; n < 10; ++n) two.take();
      while (!go_on) std::this_thread::sleep_for(milliseconds(1));
      two.end();
    });
  }
  uint32_t wait_for_leaver() {
    for (int n = 0; n < 600; ++n) {
      for (uint32_t id : {1u, 2u})
        if (w.telemetry.slot(id, kCopiesOut)) return id;  // it may be back already
      std::this_thread::sleep_for(milliseconds(5));
    }
    return 0;
  }
  void join() {
    for (auto& t : threads) t.join();
    threads.clear();
    CHECK(w.telemetry.header(kHeldTotal) == 0);
    CHECK_EMPTY(w.governor.check());
  }
};
