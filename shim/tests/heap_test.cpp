// Random blocks of all sizes: none overlaps another, held pages follow, and what is freed is one
// extent again.
#include "../src/heap.h"

#include <cstring>
#include <map>
#include <random>

#include "../src/devices/host.h"
#include "check.h"

using namespace gpushare;

namespace {

constexpr uint64_t kPage = 2 << 20, kBudgetPages = 128, kRegion = 32 << 20;

struct World {
  Telemetry telemetry;
  HostDevice device;
  Governor governor;
  PageMap map;
  Heap heap;
  explicit World(uint64_t addresses = kBudgetPages * 16)
      : telemetry(opened()),
        governor(&device, Policy::kZico, kPage, kBudgetPages, addresses, &telemetry),
        map(addresses),
        heap(&governor, &map, 1, 0, kRegion) {
    CHECK(governor.begin_job(1) == 1);
  }
  static Telemetry opened() {
    Telemetry t;
    CHECK(t.open(-1));
    return t;
  }
  void release(char* p, uint64_t bytes) {
    CHECK(heap.release(p, map.find(governor.pool().index(p))) == bytes);
  }
};

void random_blocks(uint64_t seed) {
  World w;
  std::mt19937_64 random(seed);
  struct Block {
    uint64_t bytes, returned;
    char value;
  };
  std::map<char*, Block> live;
  uint64_t live_bytes = 0;
  for (int step = 0; step < 4000; ++step) {
    uint64_t bytes = 1 + (random() % (uint64_t{1} << (6 + random() % 18)));
    if ((random() % 2 || live.empty()) && live_bytes + bytes < 60u << 20) {
      auto [address, size] = w.heap.allocate(bytes, false);
      char* p = static_cast<char*>(address);
      CHECK(reinterpret_cast<uintptr_t>(p) % 64 == 0);
      CHECK(size >= bytes);
      auto next = live.lower_bound(p);
      CHECK(next == live.end() || p + bytes <= next->first);
      if (next != live.begin()) CHECK(std::prev(next)->first + std::prev(next)->second.bytes <= p);
      char value = static_cast<char>(random());
      memset(p, value, std::min<uint64_t>(bytes, 4096));
      live[p] = {bytes, size, value};
      live_bytes += bytes;
    } else if (!live.empty()) {
      auto it = live.lower_bound(std::next(live.begin(), random() % live.size())->first);
      for (uint64_t i = 0; i < std::min<uint64_t>(it->second.bytes, 4096); ++i)
        CHECK(it->first[i] == it->second.value);
      live_bytes -= it->second.bytes;
      w.release(it->first, it->second.returned);
      live.erase(it);
    }
    if (step % 64 == 0) {
      CHECK_EMPTY(w.heap.check());
      CHECK_EMPTY(w.governor.check());
    }
    CHECK(w.governor.account(1).held * kPage >= live_bytes);
  }
  for (auto& [p, b] : live) w.release(p, b.returned);
  w.heap.trim();
  CHECK_EMPTY(w.heap.check());
  CHECK_EMPTY(w.governor.check());
  CHECK(w.governor.account(1).held == 0);
  CHECK(w.governor.reserve_range(kBudgetPages * 16) == 0);
}

void refuses_what_is_no_block() {
  World w;
  auto [address, size] = w.heap.allocate(100000, false);
  char* p = static_cast<char*>(address);
  Span* span = w.map.find(w.governor.pool().index(p));
  CHECK(w.heap.release(p + 64, span) == 0);
  CHECK(w.heap.release(p, span) == size);
  CHECK(w.heap.release(p, span) == 0);  // freed twice
}

void too_much_is_an_error_with_figures() {
  World w;
  bool refused = false;
  try {
    w.heap.allocate((kBudgetPages + 1) * kPage, false);
  } catch (const OutOfMemory& e) {
    refused = strstr(e.what(), "258.0 MiB") && strstr(e.what(), "the budget is 256.0 MiB");
  }
  CHECK(refused);
  CHECK_EMPTY(w.governor.check());
}

}  // namespace

int main() {
  for (uint64_t seed = 0; seed < 30; ++seed) random_blocks(seed);
  refuses_what_is_no_block();
  too_much_is_an_error_with_figures();
  printf("heap: ok\n");
}
