// What a wake-up costs on this machine by itself, between two threads that compute and wait on a
// condition. Who wakes the other one waits next, or computes on, as a job does that gives memory
// back in mid-iteration. Run by scripts/bench/wakeups.py.
//
// Prints a line for each: how many there were and the median, the 99th percentile and the longest,
// in nanoseconds.
#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <mutex>
#include <thread>
#include <vector>

#include "../src/clock.h"

namespace {

constexpr int kTurns = 4000;
constexpr uint64_t kTurnNs = 2'000'000;

struct Baton {
  std::mutex mutex;
  std::condition_variable wake[2];
  int holder = 0;
  bool ended = false;
  uint64_t passed_ns = 0;
  std::vector<uint64_t> latencies;
};

void compute(uint64_t ns) {
  for (uint64_t end = gpushare::now_ns() + ns; gpushare::now_ns() < end;) {
  }
}

void wait(Baton& baton, int me, std::unique_lock<std::mutex>& lock) {
  if (baton.holder == me) return;
  baton.wake[me].wait(lock, [&] { return baton.holder == me; });
  baton.latencies.push_back(gpushare::now_ns() - baton.passed_ns);
}

void pass_to(Baton& baton, int other) {
  baton.holder = other;
  baton.passed_ns = gpushare::now_ns();
  baton.wake[other].notify_one();
}

void take_turns(Baton& baton, int me) {
  for (int turn = 0; turn < kTurns / 2; ++turn) {
    std::unique_lock lock(baton.mutex);
    wait(baton, me, lock);
    lock.unlock();
    compute(kTurnNs);
    lock.lock();
    pass_to(baton, 1 - me);
  }
}

// Half as long as the other one computes, so that it waits when it is woken.
void be_woken(Baton& baton) {
  std::unique_lock lock(baton.mutex);
  while (!baton.ended) {
    baton.holder = 0;
    wait(baton, 1, lock);
    lock.unlock();
    compute(kTurnNs / 2);
    lock.lock();
  }
}

void wake_and_go_on(Baton& baton) {
  for (int turn = 0; turn < kTurns; ++turn) {
    compute(kTurnNs);
    std::unique_lock lock(baton.mutex);
    baton.ended = turn == kTurns - 1;
    pass_to(baton, 1);
  }
}

void print(Baton& baton) {
  std::vector<uint64_t>& found = baton.latencies;
  std::ranges::sort(found);
  printf("%zu %lu %lu %lu\n", found.size(), found[found.size() / 2], found[found.size() * 99 / 100],
         found.back());
}

}  // namespace

int main() {
  Baton turns;
  std::thread other([&] { take_turns(turns, 1); });
  take_turns(turns, 0);
  other.join();
  print(turns);
  Baton on;
  std::thread woken([&] { be_woken(on); });
  wake_and_go_on(on);
  woken.join();
  print(on);
}
