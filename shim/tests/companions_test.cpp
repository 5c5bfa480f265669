// What copies beside a profiled job copies, counts, and stops when it is told to.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <numeric>
#include <string_view>
#include <thread>
#include <vector>

#include "../include/gpushare.h"
#include "check.h"

namespace {

constexpr uint64_t kLongNs = 100'000'000'000;
constexpr uint64_t kHalf = (3 << 20) + 4096;  // of no whole number of pieces

void copies_until_it_is_told_to_stop() {
  std::vector<uint32_t> buffer(2 * kHalf / sizeof(uint32_t));
  auto middle = buffer.begin() + kHalf / sizeof(uint32_t);
  std::iota(buffer.begin(), middle, 1);
  int32_t stop = 0;
  uint64_t out[2] = {0, 0};
  std::atomic<bool> begun = false;
  std::thread copies([&] {
    begun = true;
    gs_traffic(buffer.data(), 2 * kHalf, &stop, kLongNs, out);
  });
  while (!begun) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
  copies.join();
  CHECK(out[0] >= kHalf && out[1] > 0 && out[1] < kLongNs);
  CHECK(std::equal(buffer.begin(), middle, middle));
}

void stopped_before_it_begins_it_does_nothing() {
  uint64_t word = 7, out[2] = {1, 1};
  int32_t stop = 1;
  gs_traffic(&word, sizeof(word), &stop, kLongNs, out);
  CHECK(out[0] == 0 && word == 7);
}

void it_ends_when_nobody_tells_it_to() {
  std::vector<char> buffer(2 * kHalf);
  int32_t stop = 0;
  uint64_t out[2];
  gs_traffic(buffer.data(), buffer.size(), &stop, 1'000'000, out);
  CHECK(out[0] > 0 && out[1] >= 1'000'000);
}

void without_python_there_is_no_gil() {
  int32_t stop = 0;
  uint64_t out[2];
  CHECK(gs_gil_watch(1000, &stop, kLongNs, out) == -1);
  CHECK(std::string_view(gs_last_error()).find("no Python") != std::string_view::npos);
}

}  // namespace

int main() {
  copies_until_it_is_told_to_stop();
  stopped_before_it_begins_it_does_nothing();
  it_ends_when_nobody_tells_it_to();
  without_python_there_is_no_gil();
  return 0;
}
