// The memory of graphs set back: after any allocations and frees just the blocks of an earlier
// state are in use, at their places and with what lies in them, and nothing overlaps them. Over the
// fake driver, whose memory the CPU can touch.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <random>
#include <stdexcept>
#include <thread>
#include <vector>

#include "../src/devices/cuda.h"
#include "../src/runtime.h"
#include "check.h"
#include "fake_cuda/driver.h"
#include "fake_cuda/fake_cuda.h"

using namespace gpushare;
using namespace gpushare::cuda;

namespace {

constexpr uint64_t kPage = 64 << 10, kRegion = 16 * kPage, kBudget = 512 * kPage;
constexpr uint32_t kJob = 1, kArena = 7;

using Blocks = std::vector<gs_arena_block>;

Stream number(CUstream stream) { return reinterpret_cast<Stream>(stream); }

struct Machine {
  Telemetry telemetry;
  CudaDevice device;
  Runtime runtime;
  std::vector<CUstream> streams;

  explicit Machine(const Driver& driver)
      : telemetry(opened(driver)), device(&driver, 0), runtime(config(), &device, &telemetry) {
    CHECK(runtime.governor().begin_job(1) == kJob);
    for (int i = 0; i < 3; ++i) {
      streams.emplace_back();
      driver.check(driver.cuStreamCreate(&streams.back(), 0), "cuStreamCreate");
      runtime.begin_stream(kJob, number(streams.back()));
    }
  }
  ~Machine() {
    runtime.end_job(kJob);
    fake_cuda_run_all();
    CHECK_EMPTY(runtime.check());
    CHECK(runtime.governor().account(kJob).held == 0);
  }
  static Telemetry opened(const Driver& driver) {
    fake_cuda_reset(3);
    fake_cuda_set_granularity(kPage);
    driver.check(driver.cuInit(0), "cuInit");
    Telemetry t;
    CHECK(t.open(-1));
    return t;
  }
  static gs_config config() {
    return {kBudget, kPage, kRegion, 0, GS_UNMANAGED, -1, 0, -1, 0, GS_CUDA, 0, nullptr};
  }
  char* take(uint64_t bytes, size_t stream = 0, uint32_t arena = kArena) {
    return static_cast<char*>(runtime.allocate(bytes, kJob, number(streams[stream]), false, arena));
  }
  Blocks state() { return runtime.arena_blocks(kJob, kArena); }
  void restore(const Blocks& blocks) { runtime.restore_arena(kJob, kArena, blocks); }
  uint64_t live() { return static_cast<uint64_t>(runtime.governor().account(kJob).live.load()); }
};

bool before(const gs_arena_block& a, const gs_arena_block& b) { return a.address < b.address; }

// In use, with what each has in it.
struct Model {
  std::map<char*, std::pair<uint64_t, char>> live;

  void add(char* p, uint64_t bytes, char value) {
    auto next = live.lower_bound(p);
    CHECK(next == live.end() || p + bytes <= next->first);
    if (next != live.begin()) CHECK(std::prev(next)->first + std::prev(next)->second.first <= p);
    live[p] = {bytes, value};
    memset(p, value, bytes);
  }
  void check_contents() const {
    for (const auto& [p, block] : live)
      for (uint64_t i : {uint64_t{0}, block.first / 2, block.first - 1})
        CHECK(p[i] == block.second);
  }
};

struct Saved {
  Blocks blocks;
  Model model;
};

// What a replay writes: the blocks of a state have its contents again.
void replay(const Model& model) {
  for (const auto& [p, block] : model.live) memset(p, block.second, block.first);
}

uint64_t any_size(std::mt19937_64& random) {
  return 1 + random() % (uint64_t{1} << (4 + random() % 17));
}

void random_states(const Driver& driver, uint64_t seed) {
  Machine m(driver);
  std::mt19937_64 random(seed);
  Model model, outside;
  std::vector<Saved> saved;
  for (int step = 0; step < 600; ++step) {
    uint64_t what = random() % 16;
    uint64_t bytes = any_size(random);
    bool room = m.runtime.governor().account(kJob).held * kPage < kBudget / 2;
    if (what < 7 && room) {
      model.add(m.take(bytes, random() % 2), bytes, static_cast<char>(random()));
    } else if (what < 9 && room) {
      outside.add(m.take(bytes, 0, 0), bytes, static_cast<char>(random()));
    } else if (what < 13 && !model.live.empty()) {
      auto it = std::next(model.live.begin(), static_cast<long>(random() % model.live.size()));
      CHECK(m.runtime.release(it->first));
      model.live.erase(it);
    } else if (what == 13 && !outside.live.empty()) {
      CHECK(m.runtime.release(outside.live.begin()->first));
      outside.live.erase(outside.live.begin());
    } else if (what == 14) {
      saved.push_back({m.state(), model});
      CHECK(saved.back().blocks.size() == model.live.size());
    } else if (what == 15 && !saved.empty()) {
      const Saved& chosen = saved[random() % saved.size()];
      replay(chosen.model);  // it writes before the heap is told
      m.restore(chosen.blocks);
      model = chosen.model;
    }
    model.check_contents();
    outside.check_contents();
    if (step % 16 == 0) CHECK_EMPTY(m.runtime.check());
    Blocks now = m.state();
    std::ranges::sort(now, before);
    CHECK(now.size() == model.live.size());
    auto expected = model.live.begin();
    for (const gs_arena_block& b : now)
      CHECK(reinterpret_cast<char*>(b.address) == (expected++)->first);
  }
  for (auto& [p, block] : model.live) CHECK(m.runtime.release(p));
  for (auto& [p, block] : outside.live) CHECK(m.runtime.release(p));
  CHECK(m.live() == 0);
}

// A block that was freed where a larger one lies now, and small ones whose slab became something
// else.
void places_that_became_others(const Driver& driver) {
  Machine m(driver);
  char* small = m.take(64);
  char* middle = m.take(3 * kPage);
  char* large = m.take(20 * kPage);
  Blocks three = m.state();
  CHECK(three.size() == 3 && three[0].slab != 0 && three[1].slab == 0);
  for (char* p : {small, middle, large}) CHECK(m.runtime.release(p));
  std::vector<char*> others;
  for (int i = 0; i < 4; ++i) others.push_back(m.take(5 * kPage));
  others.push_back(m.take(17 * kPage));  // in the large one's place
  CHECK(others.back() == large);
  for (int i = 0; i < 300; ++i) others.push_back(m.take(200));
  uint64_t made = m.runtime.governor().account(kJob).allocations;
  m.restore(three);
  CHECK(m.live() == 64 + 23 * kPage);
  CHECK(m.runtime.governor().account(kJob).allocations == made + 3);
  std::vector<char*> back = {small, middle, large};
  for (char* p : others) CHECK(std::ranges::count(back, p) || !m.runtime.release(p));
  for (char* p : back) CHECK(m.runtime.release(p));
}

// Other streams may still use what leaves with the state: who gets it next waits for them.
void used_elsewhere_is_waited_for(const Driver& driver) {
  Machine m(driver);
  char* kept = m.take(4 * kPage);
  Blocks one = m.state();
  char* noted = m.take(4 * kPage);
  fake_cuda_launch_write(m.streams[0], reinterpret_cast<CUdeviceptr>(noted), 4 * kPage, 5);
  m.runtime.note_use(noted, number(m.streams[2]));
  CUevent written = nullptr;
  driver.check(driver.cuEventCreate(&written, 0), "cuEventCreate");
  driver.check(driver.cuEventRecord(written, m.streams[0]), "cuEventRecord");
  driver.check(driver.cuStreamWaitEvent(m.streams[2], written, 0), "cuStreamWaitEvent");
  fake_cuda_launch_read(m.streams[2], reinterpret_cast<CUdeviceptr>(noted), 4 * kPage, 5);
  char* passing = m.take(5 * kPage);
  m.runtime.note_use(passing, number(m.streams[2]));
  CHECK(m.runtime.release(passing));
  CHECK(m.state().size() == 2);
  m.runtime.begin_capture(kJob);
  bool refused = false;
  try {
    m.restore(one);
  } catch (const DeviceFailure&) {
    refused = true;
  }
  CHECK(refused && m.state().size() == 2);
  m.runtime.end_capture(kJob);
  m.restore(one);
  char* again = m.take(4 * kPage);
  CHECK(again == noted);
  fake_cuda_launch_write(m.streams[0], reinterpret_cast<CUdeviceptr>(again), 4 * kPage, 6);
  fake_cuda_run_all();
  fake_cuda_counters counters = fake_cuda_read_counters();
  CHECK(counters.wrong_reads == 0);
  CHECK(m.runtime.governor().account(kJob).cpu_waits > 0);
  CHECK(m.runtime.release(again) && m.runtime.release(kept));
}

// What a graph gets it may use on any stream, so nothing that another stream still uses is given to
// one. Where there is no other memory the CPU waits.
void nothing_in_use_goes_to_a_graph(const Driver& driver) {
  Machine m(driver);
  constexpr uint64_t kBytes = 7 * kPage;
  auto use_late = [&](char* p) {
    auto address = reinterpret_cast<CUdeviceptr>(p);
    fake_cuda_launch_write(m.streams[2], address, kBytes, 5);
    fake_cuda_launch_read(m.streams[2], address, kBytes, 5);
    CHECK(m.runtime.note_use(p, number(m.streams[2])));
    CHECK(m.runtime.release(p));
  };
  auto replay_late = [&](char* p) {
    fake_cuda_launch_write(m.streams[1], reinterpret_cast<CUdeviceptr>(p), kBytes, 6);
  };
  char *first = m.take(kBytes), *second = m.take(kBytes);
  use_late(first);
  m.runtime.trim(kJob);
  char* other = m.take(kBytes);
  CHECK(other != first);
  replay_late(other);
  CHECK(m.runtime.governor().account(kJob).cpu_waits == 0);
  uint64_t left = kBudget / kPage - m.runtime.governor().account(kJob).held;
  char* rest = m.take((left - 2) * kPage, 0, 0);
  char* again = m.take(kBytes);
  CHECK(again == first && m.runtime.governor().account(kJob).cpu_waits == 1);
  replay_late(again);
  fake_cuda_run_all();
  CHECK(fake_cuda_read_counters().wrong_reads == 0);
  for (char* p : {second, other, rest, again}) CHECK(m.runtime.release(p));
}

// The sampler gives blocks back that no stream uses any more, while states are kept and restored:
// it frees none that is in use again, and none twice.
void the_sampler_is_at_it_too(const Driver& driver) {
  Machine m(driver);
  char* kept = m.take(3 * kPage);
  char* small = m.take(64);
  Blocks both = m.state();
  std::atomic<bool> ending{false};
  std::thread sampler([&] {
    while (!ending) m.runtime.tick();
  });
  for (int round = 0; round < 3000; ++round) {
    for (char* p : {kept, small}) {
      m.runtime.note_use(p, number(m.streams[2]));
      CHECK(m.runtime.release(p));
    }
    m.runtime.governor().fences().close(kJob);
    if (round % 2) fake_cuda_run_all();
    m.restore(both);
    CHECK(m.live() == 3 * kPage + 64);
  }
  ending = true;
  sampler.join();
  CHECK(m.state().size() == 2);
  for (char* p : {kept, small}) CHECK(m.runtime.release(p));
  CHECK(m.live() == 0);
}

void an_arena_that_is_gone(const Driver& driver) {
  Machine m(driver);
  char* block = m.take(100);
  Blocks one = m.state();
  m.runtime.end_arena(kJob, kArena);
  bool refused = false;
  try {
    m.restore(one);
  } catch (const DeviceFailure&) {
    refused = true;
  }
  CHECK(refused && m.state().empty());
  CHECK(m.runtime.release(block));
  Blocks nothing;
  m.restore(nothing);
}

// What a job gives up while it captures can't be fenced, so it stays its own until the end: nobody
// else is told of an error of the device.
void nothing_leaves_in_a_capture(const Driver& driver) {
  Machine m(driver);
  constexpr uint32_t kOther = 2;
  CHECK(m.runtime.governor().begin_job(1) == kOther);
  m.runtime.begin_stream(kOther, number(m.streams[1]));
  auto other_gets = [&](uint64_t pages) {
    try {
      void* block = m.runtime.allocate(pages * kPage, kOther, number(m.streams[1]), true);
      CHECK(m.runtime.release(block));
    } catch (const OutOfMemory&) {
      return false;
    }
    return true;
  };
  CHECK(m.runtime.release(m.take(200 * kPage)));      // stays the graph's
  CHECK(m.runtime.release(m.take(kPage / 2, 0, 0)));  // stays, as a page of a region
  uint64_t held = m.runtime.governor().account(kJob).held;
  CHECK(held > 200);
  m.runtime.begin_capture(kJob);
  CHECK(cuStreamBeginCapture_v2(m.streams[0], CU_STREAM_CAPTURE_MODE_THREAD_LOCAL) == CUDA_SUCCESS);
  m.runtime.end_arena(kJob, kArena);
  m.runtime.trim(kJob);
  CHECK(other_gets(512 - held) && !other_gets(512 - held + 1) && !other_gets(312));
  CUgraph graph = nullptr;
  CHECK(cuStreamEndCapture(m.streams[0], &graph) == CUDA_SUCCESS);
  m.runtime.end_capture(kJob);
  m.runtime.trim(kJob);
  CHECK(other_gets(512));
  m.runtime.end_job(kOther);
}

// A capture that failed is ended twice. The job goes on, and what it frees leaves again.
void one_end_too_many(const Driver& driver) {
  Machine m(driver);
  m.runtime.begin_capture(kJob);
  m.runtime.end_capture(kJob);
  m.runtime.end_capture(kJob);
  CHECK(m.runtime.governor().account(kJob).captures == 0);
  CHECK(m.runtime.release(m.take(20 * kPage, 0, 0)));
  CHECK(m.runtime.governor().account(kJob).held == 0);
  m.runtime.begin_capture(kJob);
  CHECK(m.runtime.governor().account(kJob).captures == 1);
  m.runtime.end_capture(kJob);
}

// What no arena has told of is not taken for its own.
void blocks_of_nobody(const Driver& driver) {
  Machine m(driver);
  m.take(100);
  Blocks one = m.state();
  char* other = m.take(3 * kPage, 0, 0);
  one[0].address = reinterpret_cast<uint64_t>(other);
  one[0].slab = 0;
  bool failed = false;
  try {
    m.restore(one);
  } catch (const std::logic_error&) {
    failed = true;
  }
  CHECK(failed);
  CHECK(m.runtime.release(other));
}

}  // namespace

int main() {
  Driver driver(GPUSHARE_FAKE_CUDA);
  for (uint64_t seed = 0; seed < 60; ++seed) random_states(driver, seed);
  places_that_became_others(driver);
  used_elsewhere_is_waited_for(driver);
  nothing_in_use_goes_to_a_graph(driver);
  the_sampler_is_at_it_too(driver);
  an_arena_that_is_gone(driver);
  nothing_leaves_in_a_capture(driver);
  one_end_too_many(driver);
  blocks_of_nobody(driver);
  puts("arenas: ok");
}
