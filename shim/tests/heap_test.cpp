// Random blocks of all sizes: none overlaps another, held pages follow, and what is freed is one
// extent again.
#include "../src/heap.h"

#include <cstdlib>
#include <cstring>
#include <map>
#include <new>
#include <random>
#include <vector>

#include "../src/devices/host.h"
#include "check.h"

using namespace gpushare;

// What the program has on the C++ heap. Each form of operator new that is used ends in this one.
static int64_t objects = 0;
// Not inlined: where the compiler sees only one of a pair it finds that malloc is freed by delete.
[[gnu::noinline]] void* operator new(size_t bytes) {
  void* p = malloc(bytes);
  if (!p) throw std::bad_alloc();
  ++objects;
  return p;
}
[[gnu::noinline]] void operator delete(void* p) noexcept {
  objects -= p != nullptr;
  free(p);
}
void operator delete(void* p, size_t) noexcept { operator delete(p); }

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
        heap(&governor, &map, 1, 0, 0, kRegion) {
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
      auto [address, size] = w.heap.allocate(bytes, false, random() % 4 == 0);
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
  auto [address, size] = w.heap.allocate(100000, false, false);
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
    w.heap.allocate((kBudgetPages + 1) * kPage, false, false);
  } catch (const OutOfMemory& e) {
    refused = strstr(e.what(), "258.0 MiB") && strstr(e.what(), "the budget is 256.0 MiB");
  }
  CHECK(refused);
  CHECK_EMPTY(w.governor.check());
}

// Pages left when, of blocks taken by turns, those have gone that were to go.
uint64_t left_by_those_who_stay(bool told) {
  World w;
  std::vector<char*> brief;
  uint64_t bytes = 600000;
  for (int n = 0; n < 40; ++n) {
    brief.push_back(static_cast<char*>(w.heap.allocate(bytes, false, false).address));
    w.heap.allocate(bytes / 4, false, told);
  }
  for (char* p : brief) w.release(p, bytes);
  w.heap.trim();
  CHECK_EMPTY(w.heap.check());
  return w.governor.account(1).held;
}

void persistent_blocks_keep_to_themselves() {
  CHECK(2 * left_by_those_who_stay(true) <= left_by_those_who_stay(false));
}

void a_place_on_charged_pages_comes_first() {
  World w;
  auto take = [&](uint64_t quarters) {
    return static_cast<char*>(w.heap.allocate(quarters * kPage / 4, false, false).address);
  };
  // A hole of six quarters of a page on two charged pages. At the end of the region five quarters
  // are left: tighter, but one more page.
  take(1);
  char* hole = take(6);
  take(1);
  for (uint64_t quarters : {12, 12, 12, 15}) take(quarters);
  uint64_t held = w.governor.account(1).held;
  CHECK(held == 15);
  w.release(hole, 6 * kPage / 4);
  CHECK(take(5) == hole);
  CHECK(w.governor.account(1).held == held);
}

// What is left of the budget, in one extent.
struct Rest {
  World& w;
  uint64_t bytes = (kBudgetPages - w.governor.account(1).held) * kPage;
  char* address = static_cast<char*>(w.heap.allocate(bytes, false, false).address);
  ~Rest() { w.release(address, bytes); }
};

// More holes than are compared as a rule need a page; a larger one needs none.
void no_place_is_missed_when_nothing_is_left() {
  constexpr uint64_t kEighth = kPage / 8;
  World w;
  std::vector<char*> pages;
  auto take = [&](uint64_t bytes) {
    return static_cast<char*>(w.heap.allocate(bytes, false, false).address);
  };
  for (uint64_t n = 0; n < 3 * kRegion / kPage; ++n) pages.push_back(take(kPage));
  take(3 * kEighth);
  char* hole = take(10 * kEighth);
  take(3 * kEighth);
  w.release(hole, 10 * kEighth);
  for (size_t n = 1; n < pages.size(); n += 2) w.release(pages[n], kPage);
  w.heap.trim();
  Rest rest{w};
  char* p = take(6 * kEighth);
  CHECK(hole <= p && p < hole + 10 * kEighth);
  CHECK_EMPTY(w.heap.check());
  CHECK(w.governor.account(1).held == kBudgetPages);
}

// What is to outlive its iteration keeps off the pages of what is not, as long as there are others.
void what_lasts_lies_anywhere_when_nothing_is_left() {
  World w;
  auto* first = static_cast<char*>(w.heap.allocate(kPage / 4, false, false).address);
  Rest rest{w};
  CHECK(w.heap.allocate(kPage / 4, false, true).address == first + kPage / 4);
}

void an_emptied_page_is_given_up_when_nothing_is_left() {
  for (bool extent : {false, true}) {
    World w;
    std::vector<char*> pages;
    for (int n = 0; n < 3; ++n)
      pages.push_back(static_cast<char*>(w.heap.allocate(kPage, false, false).address));
    uint64_t more = extent ? kRegion / kPage / 2 : 2;
    uint64_t most = (kBudgetPages - 2 - more) * kPage;
    auto* others = static_cast<char*>(w.heap.allocate(most, false, false).address);
    w.release(pages[1], kPage);
    CHECK(w.governor.account(1).held == kBudgetPages + 1 - more);
    auto* last = static_cast<char*>(w.heap.allocate(more * kPage, false, false).address);
    CHECK_EMPTY(w.heap.check());
    CHECK(w.governor.account(1).held == kBudgetPages);
    w.release(others, most), w.release(last, more * kPage);
  }
}

void what_an_iteration_keeps_is_foreseen() {
  auto kinds = std::make_unique<Kinds>();
  kinds->note_set_up(1000);
  CHECK(kinds->persistent(0, 1000));  // a gradient of a parameter
  CHECK(!kinds->persistent(0, 2000));
  CHECK(!kinds->learned());
  kinds->learn({{1000, false}, {2000, true}, {2000, false}, {2000, true}});
  CHECK(kinds->learned());
  CHECK(!kinds->persistent(0, 1000));
  CHECK(kinds->persistent(1, 2000));
  CHECK(!kinds->persistent(2, 2000));
  CHECK(kinds->persistent(0, 2000));  // elsewhere: as most of its size
  CHECK(!kinds->persistent(9, 1000));
  CHECK(!kinds->persistent(9, 3000));  // never seen
  // More sizes than there is room for are forgotten, not mixed up.
  for (uint64_t n = 0; n < 5000; ++n) kinds->note_set_up(64 * n + 1);
  CHECK(!kinds->persistent(9, 2));
}

void a_trace_tells_what_remains() {
  Trace trace;
  char bytes[4];
  trace.start(0);
  trace.allocated(&bytes[0], 10, 0);
  trace.allocated(&bytes[1], 20, 0);
  trace.freed(&bytes[0], 10, 0);
  trace.allocated(&bytes[0], 30, 0);
  trace.freed(&bytes[3], 5, 0);  // older
  trace.finish();
  std::vector<Kinds::Made> made = trace.take_made();
  CHECK(made.size() == 3);
  CHECK(made[0].bytes == 10 && !made[0].persistent);
  CHECK(made[1].bytes == 20 && made[1].persistent);
  CHECK(made[2].bytes == 30 && made[2].persistent);
  std::vector<LogRecord> log = trace.take_log(3, 7);
  CHECK(log.size() == 7 && log[0].what == Logged::kIterationOpened);
  CHECK(log[6].what == Logged::kIterationClosed);
  CHECK(log[1].kind == Kind::kTemporary && log[2].kind == Kind::kPersistent);
  CHECK(log[3].what == Logged::kFreed && log[3].address == log[1].address);
  CHECK(log[4].bytes == 30 && log[4].kind == Kind::kPersistent);
  for (size_t i = 1; i < log.size(); ++i) {
    CHECK(log[i].time_ns >= log[i - 1].time_ns);
    CHECK(log[i].account == 3 && log[i].iteration == 7);
  }
}

void counts_where_blocks_lie() {
  World w;
  Account& a = w.governor.account(1);
  auto live = [&](Lies lies) { return static_cast<uint64_t>(a.live_at[lies]); };
  auto take = [&](uint64_t bytes, bool persistent) {
    return static_cast<char*>(w.heap.allocate(bytes, false, persistent).address);
  };
  char* small = take(1000, true);
  CHECK(a.live == 1024);
  char* kept = take(100'000, true);
  char* passing = take(200'000, false);
  CHECK(live(kAmongPersistent) == 100'000 && live(kAmongTransient) == 200'000);
  CHECK(a.reserved == static_cast<int64_t>(kRegion));
  char* extent = take(17 << 20, true);
  CHECK(live(kInExtent) == 17 << 20);
  CHECK(a.reserved == static_cast<int64_t>(kRegion + (18 << 20)));
  CHECK(a.live == 1024 + 300'000 + (17 << 20));
  w.release(extent, 17 << 20), w.release(passing, 200'000), w.release(kept, 100'000);
  CHECK(a.reserved == static_cast<int64_t>(kRegion));
  w.release(small, 1024);
  for (const auto& at : a.live_at) CHECK(at == 0);
  w.heap.trim();
  CHECK(a.reserved == 0);
}

// A script may make a graph for each of many shapes, and drop them: what describes the blocks of
// one goes with it, also of those that are freed later.
void nothing_is_left_of_a_graph_that_is_gone() {
  constexpr int kBlocks = 200, kFew = 10;
  World w;
  Heap graph(&w.governor, &w.map, 1, 0, 7, kRegion);
  auto release = [&](void* p) { CHECK(graph.release(p, w.map.find(w.governor.pool().index(p)))); };
  std::vector<void*> blocks(kBlocks);
  int64_t before = objects;
  for (void*& p : blocks) p = graph.allocate(100'000, false, false).address;
  CHECK(objects > before + kBlocks / 2);
  for (int i = 0; i < kBlocks / 2; ++i) release(blocks[i]);
  graph.dissolve();
  for (int i = kBlocks / 2; i < kBlocks; ++i) release(blocks[i]);
  CHECK(objects < before + kFew);
}

}  // namespace

int main() {
  for (uint64_t seed = 0; seed < 30; ++seed) random_blocks(seed);
  persistent_blocks_keep_to_themselves();
  a_place_on_charged_pages_comes_first();
  no_place_is_missed_when_nothing_is_left();
  what_lasts_lies_anywhere_when_nothing_is_left();
  an_emptied_page_is_given_up_when_nothing_is_left();
  what_an_iteration_keeps_is_foreseen();
  a_trace_tells_what_remains();
  refuses_what_is_no_block();
  counts_where_blocks_lie();
  nothing_is_left_of_a_graph_that_is_gone();
  too_much_is_an_error_with_figures();
  printf("heap: ok\n");
}
