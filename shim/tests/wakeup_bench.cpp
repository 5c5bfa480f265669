// What a wake-up costs on this machine by itself: two threads that compute in turns, each waiting
// on a condition until the other one has come to its end. Run by scripts/bench/wakeups.py.
//
// Prints how many there were and the median, the 99th percentile and the longest, in nanoseconds.
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
  uint64_t passed_ns = 0;
  std::vector<uint64_t> latencies;
};

void compute() {
  for (uint64_t end = gpushare::now_ns() + kTurnNs; gpushare::now_ns() < end;) {
  }
}

void take_turns(Baton& baton, int me) {
  for (int turn = 0; turn < kTurns / 2; ++turn) {
    std::unique_lock lock(baton.mutex);
    if (baton.holder != me) {
      baton.wake[me].wait(lock, [&] { return baton.holder == me; });
      baton.latencies.push_back(gpushare::now_ns() - baton.passed_ns);
    }
    lock.unlock();
    compute();
    lock.lock();
    baton.holder = 1 - me;
    baton.passed_ns = gpushare::now_ns();
    baton.wake[1 - me].notify_one();
  }
}

}  // namespace

int main() {
  Baton baton;
  std::thread other([&] { take_turns(baton, 1); });
  take_turns(baton, 0);
  other.join();
  std::vector<uint64_t>& found = baton.latencies;
  std::ranges::sort(found);
  printf("%zu %lu %lu %lu\n", found.size(), found[found.size() / 2], found[found.size() * 99 / 100],
         found.back());
}
