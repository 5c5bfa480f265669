// Pages whose work on the device could not be done, so that who held them leaves them without
// having used them: whoever gets their memory waits for who did use it, and no memory is lost.
#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>
#include <vector>

#include "../src/devices/cuda.h"
#include "../src/heap.h"
#include "check.h"
#include "fake_cuda/fake_cuda.h"

using namespace gpushare;
using namespace gpushare::cuda;

namespace {

constexpr uint64_t kPage = 256 << 10, kPages = 4, kAddresses = 64;

CUdeviceptr at(const void* p) { return reinterpret_cast<CUdeviceptr>(p); }

void write(CUstream stream, const void* p, uint64_t bytes, uint64_t tag) {
  fake_cuda_launch_write(stream, at(p), bytes, tag);
  fake_cuda_launch_read(stream, at(p), bytes, tag);
}

// Three jobs with a stream each, and a budget that one of them can fill.
struct World {
  World(const Driver& driver, uint64_t seed, uint64_t addresses = kAddresses)
      : driver(driver), device(start(driver, seed), 0), addresses(addresses) {
    CHECK(telemetry.open(-1));
    g.fences().longest_capture = {};
    for (uint32_t i = 0; i < 3; ++i) {
      CHECK(g.begin_job(0) == static_cast<int32_t>(i + 1));
      driver.check(driver.cuStreamCreate(&streams[i], CU_STREAM_DEFAULT), "cuStreamCreate");
      handles[i] = reinterpret_cast<Stream>(streams[i]);
      g.fences().add_stream(i + 1, handles[i]);
    }
  }
  static const Driver* start(const Driver& driver, uint64_t seed) {
    fake_cuda_reset(seed);
    fake_cuda_set_granularity(kPage);
    driver.check(driver.cuInit(0), "cuInit");
    return &driver;
  }
  Heap heap(uint32_t job, uint64_t region_pages) {
    return {&g, &map, job, handles[job - 1], 0, region_pages * kPage};
  }
  PageIndex hold(uint32_t job, uint64_t n, DeviceWork& work) {
    g.charge(job, n, false, n * kPage);
    return g.hold_range(n, job, handles[job - 1], work);
  }
  PageIndex take(uint32_t job, uint64_t n) {
    DeviceWork work;
    PageIndex p = hold(job, n, work);
    g.perform(work, job, handles[job - 1]);
    return p;
  }
  bool fails(DeviceWork& work, uint32_t job) {
    try {
      g.perform(work, job, handles[job - 1]);
      return false;
    } catch (const DeviceFailure&) {
      return true;
    }
  }
  void unhold(uint32_t job, PageIndex first, uint64_t n, bool release,
              const DeviceWork* undone = nullptr) {
    std::atomic<Stream> stream(handles[job - 1]);
    g.unhold(first, n, job, stream, release, undone);
  }
  void begin_capture(uint32_t job) {
    driver.check(
        driver.cuStreamBeginCapture_v2(streams[job - 1], CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
        "cuStreamBeginCapture");
  }
  void end_capture(uint32_t job) {
    CUgraph graph;
    driver.check(driver.cuStreamEndCapture(streams[job - 1], &graph), "cuStreamEndCapture");
  }
  uint64_t held() {
    uint64_t sum = 0;
    for (uint32_t job : {1, 2, 3}) sum += g.account(job).held.load();
    return sum;
  }
  // Where a mapping failed the device has tried in vain to unmap what might lie there.
  void finish(uint64_t failed_mappings = 0) {
    fake_cuda_run_all();
    CHECK(fake_cuda_read_counters().wrong_reads == 0);
    CHECK(fake_cuda_read_counters().misuses == failed_mappings);
    CHECK_EMPTY(g.check());
    CHECK(g.pool().backed() <= kPages);
  }

  const Driver& driver;
  CudaDevice device;
  uint64_t addresses;
  Telemetry telemetry;
  Governor g{&device, Policy::kUnmanaged, kPage, kPages, addresses, &telemetry};
  PageMap map{addresses};
  CUstream streams[3];
  Stream handles[3];
};

bool refused_for_the_capture(Heap& heap, uint64_t bytes) {
  try {
    heap.allocate(bytes, false, false);
    return false;
  } catch (const DeviceFailure& e) {
    return strstr(e.what(), "captures a CUDA graph");
  }
}

void free(World& w, Heap& heap, void* p) {
  CHECK(heap.release(p, w.map.find(w.g.pool().index(p))));
}

// A block of so many pages, written and read later, is freed at once, and its pages leave.
void use_once(World& w, uint32_t job, Heap& heap, uint64_t pages) {
  void* p = heap.allocate(pages * kPage, false, false).address;
  write(w.streams[job - 1], p, pages * kPage, 11 * job);
  free(w, heap, p);
  heap.trim();
}

// A job has freed all that there is, its work is still to come, and it captures a graph, so that
// nothing can be fenced. Others are told so however often they try, and once the capture has ended
// they wait for the work. `region_pages`: so that the pages are an extent's, or a region's.
void who_tries_again_waits_too(const Driver& driver, uint64_t seed, uint64_t region_pages) {
  World w(driver, seed);
  {
    Heap first = w.heap(1, region_pages), second = w.heap(2, region_pages),
         third = w.heap(3, region_pages);
    use_once(w, 1, first, kPages);
    w.begin_capture(1);
    for (Heap* heap : {&second, &second, &third, &second}) {
      CHECK(refused_for_the_capture(*heap, kPages * kPage));
      CHECK(w.held() == 0);
      CHECK_EMPTY(w.g.check());
    }
    w.end_capture(1);
    use_once(w, 3, third, kPages);
    use_once(w, 2, second, kPages);
  }
  w.finish();
}

// Of the pages of a block that can't be had the first was the job's own already, and used.
void what_was_used_is_not_left_as_unused(const Driver& driver, uint64_t seed) {
  World w(driver, seed);
  {
    Heap first = w.heap(1, 16), second = w.heap(2, 16), third = w.heap(3, 16);
    void* own = second.allocate(kPage, false, false).address;
    write(w.streams[1], own, kPage, 21);
    use_once(w, 1, first, 3);
    free(w, second, own);  // its page stays with the heap
    w.begin_capture(1);
    CHECK(refused_for_the_capture(second, kPages * kPage));
    w.end_capture(1);
    CHECK(w.held() == 0);
    use_once(w, 3, third, kPages);
  }
  w.finish();
}

// Nor is a block of a slab handed out that lies on a page that is ready, as long as others of the
// slab are not: who frees it might give those back while somebody is at work on them.
void a_slab_is_ready_as_a_whole(const Driver& driver, uint64_t seed) {
  World w(driver, seed);
  {
    Heap first = w.heap(1, 16), second = w.heap(2, 16);
    void* own = second.allocate(kPage - (32 << 10), false, true).address;
    use_once(w, 1, first, 3);
    w.begin_capture(1);
    CHECK(refused_for_the_capture(second, 512));
    CHECK(w.held() == 1);
    w.end_capture(1);
    void* small = second.allocate(512, false, false).address;
    CHECK(static_cast<char*>(small) == static_cast<char*>(own) + kPage - (32 << 10));
    free(w, second, small);
    free(w, second, own);
    second.trim();
  }
  w.finish();
}

// Nor does an arena keep what it could not use, although it gives back nothing else.
void an_arena_keeps_no_page_that_is_not_ready(const Driver& driver, uint64_t seed) {
  World w(driver, seed);
  {
    Heap first = w.heap(1, 16), graphs(&w.g, &w.map, 2, w.handles[1], 1, 16 * kPage);
    void* own = graphs.allocate(kPage, false, false).address;
    use_once(w, 1, first, 3);
    w.begin_capture(1);
    CHECK(refused_for_the_capture(graphs, 2 * kPage));
    CHECK(w.held() == 1);
    w.end_capture(1);
    CHECK_EMPTY(graphs.check());
    free(w, graphs, graphs.allocate(2 * kPage, false, false).address);
    CHECK(w.held() == 3);
    free(w, graphs, own);
    graphs.dissolve();
  }
  w.finish();
}

// After the failure the heap has nothing to settle: it asks the device for nothing more.
void nothing_is_left_to_be_done(const Driver& driver, uint64_t seed) {
  World w(driver, seed);
  {
    Heap first = w.heap(1, 16), second = w.heap(2, 16);
    void* own = second.allocate(kPage / 4, false, true).address;
    use_once(w, 1, first, 3);
    w.begin_capture(1);
    CHECK(refused_for_the_capture(second, 3 * kPage));
    void* small = second.allocate(512, true, false).address;  // beside `own`
    CHECK(small);
    w.end_capture(1);
    free(w, second, small);
    free(w, second, second.allocate(512, true, false).address);
    CHECK(w.g.account(2).device_waits == 0);
    free(w, second, own);
    second.trim();
  }
  w.finish();
}

// Who wants the memory meanwhile is not refused: it waits until the capture has ended.
void others_wait_for_its_end(const Driver& driver, uint64_t seed, uint64_t region_pages) {
  World w(driver, seed);
  w.g.fences().longest_capture = std::chrono::hours(1);
  {
    Heap first = w.heap(1, region_pages), second = w.heap(2, region_pages);
    use_once(w, 1, first, kPages);
    w.begin_capture(1);
    std::thread other([&] { use_once(w, 2, second, kPages); });
    uint64_t tries = fake_cuda_calls("cuStreamIsCapturing") + 3;
    while (fake_cuda_calls("cuStreamIsCapturing") < tries) std::this_thread::yield();
    w.end_capture(1);
    other.join();
    CHECK(w.g.account(2).cpu_waits == 1);
  }
  w.finish();
}

// What a thread captures itself does not end while it waits, so it is told at once.
void nobody_waits_for_its_own(const Driver& driver, uint64_t seed) {
  World w(driver, seed);
  w.g.fences().longest_capture = std::chrono::hours(1);
  {
    Heap heap = w.heap(1, 16);
    void* p = heap.allocate(kPages * kPage, false, false).address;
    write(w.streams[0], p, kPages * kPage, 11);
    free(w, heap, p);
    heap.trim();
    w.begin_capture(1);
    Heap beside(&w.g, &w.map, 1, w.handles[1], 0, 16 * kPage);
    CHECK(refused_for_the_capture(beside, kPages * kPage));
    w.end_capture(1);
  }
  w.finish();
}

// Nothing lies where it could not be mapped, and who tries again has it mapped.
void what_could_not_be_mapped_is_not_there(const Driver& driver, uint64_t seed,
                                           uint64_t region_pages) {
  World w(driver, seed);
  {
    Heap heap = w.heap(1, region_pages);
    CHECK(fake_cuda_fail("cuMemMap", 2, CUDA_ERROR_UNKNOWN));
    bool told = false;
    try {
      heap.allocate(kPages * kPage, false, false);
    } catch (const DeviceFailure& e) {
      told = strstr(e.what(), "cuMemMap");
    }
    CHECK(told && w.held() == 0);
    CHECK_EMPTY(w.g.check());
    void* p = heap.allocate(kPages * kPage, false, false).address;
    write(w.streams[0], p, kPages * kPage, 11);
    free(w, heap, p);
    heap.trim();
  }
  w.finish(1);
}

// A job's own pages can't be mapped at the addresses where it wants them next. They were free for
// it at once, since it goes on on the same stream; who gets them now is another, and its stream may
// be ahead of the job's last read.
void what_is_given_up_has_been_read(const Driver& driver, uint64_t seed) {
  World w(driver, seed);
  PageIndex read = w.take(1, kPages);
  write(w.streams[0], w.g.pool().address(read), kPages * kPage, 11);
  w.unhold(1, read, kPages, false);
  DeviceWork work;
  PageIndex elsewhere = w.hold(1, kPages, work);
  CHECK(work.mappings.size() == kPages && work.waits.empty());
  CHECK(fake_cuda_fail("cuMemMap", 1, CUDA_ERROR_UNKNOWN));
  CHECK(w.fails(work, 1));
  w.unhold(1, elsewhere, kPages, true, &work);

  DeviceWork others;
  PageIndex theirs = w.hold(2, kPages, others);
  CHECK(others.mappings.size() == kPages && others.unready.size() == kPages);
  CHECK(fake_cuda_fail("cuMemMap", 1, CUDA_ERROR_UNKNOWN));
  CHECK(w.fails(others, 2));
  w.unhold(2, theirs, kPages, true, &others);
  CHECK_EMPTY(w.g.check());

  PageIndex taken = w.take(2, kPages);
  write(w.streams[1], w.g.pool().address(taken), kPages * kPage, 22);
  fake_cuda_run_all();
  w.unhold(2, taken, kPages, true);
  w.finish(2);
}

// The addresses are still in use by who captures, and other memory was to lie there. It is not
// lost, and what lies there stays until the work has ended.
void addresses_in_use_are_left_as_they_are(const Driver& driver, uint64_t seed) {
  World w(driver, seed, 6);
  PageIndex idle = w.take(3, 2);
  PageIndex old = w.take(1, 2);
  write(w.streams[0], w.g.pool().address(old), 2 * kPage, 11);
  w.unhold(1, old, 2, false);
  PageIndex now = w.take(1, 2);  // the same memory, elsewhere
  write(w.streams[0], w.g.pool().address(now), 2 * kPage, 12);
  w.unhold(3, idle, 2, false);  // its memory is for others, its addresses are not
  w.g.fences().finish(3, w.g.fences().open(3));
  w.g.release_range(old, 2);
  w.begin_capture(1);
  for (int tries = 0; tries < 2; ++tries) {
    DeviceWork work;
    CHECK(w.hold(2, 2, work) == old);
    CHECK(work.mappings.size() == 2 && work.waits.empty());
    CHECK(w.fails(work, 2));
    w.unhold(2, old, 2, true, &work);
    CHECK_EMPTY(w.g.check());
  }
  w.end_capture(1);
  CHECK(w.take(2, 2) == old);
  write(w.streams[1], w.g.pool().address(old), 2 * kPage, 22);
  w.unhold(2, old, 2, true);
  w.unhold(1, now, 2, false);
  w.finish();
  // Nor is it as if something still lay there once all is gone, nor is any memory kept by it.
  w.g.fences().finish(2, w.g.fences().open(2));
  CHECK_EMPTY(w.g.set_budget(2));
  CHECK(fake_cuda_read_counters().bytes_held == w.g.pool().backed() * kPage);
  CHECK_EMPTY(w.g.set_budget(3));
  CHECK(w.take(2, 2) == old);
  w.unhold(2, old, 2, true);
  w.finish();
}

// What still lies at an address keeps its memory, so it is taken away once nobody uses it there.
void nothing_keeps_memory_that_is_gone(const Driver& driver, uint64_t seed) {
  World w(driver, seed, 6);
  PageIndex idle = w.take(3, 2), old = w.take(1, 2);
  write(w.streams[0], w.g.pool().address(old), 2 * kPage, 11);
  w.unhold(1, old, 2, false);
  PageIndex now = w.take(1, 2);
  w.unhold(3, idle, 2, false);
  w.g.fences().finish(3, w.g.fences().open(3));
  w.g.release_range(old, 2);
  w.begin_capture(1);
  DeviceWork work;
  CHECK(w.hold(2, 2, work) == old && w.fails(work, 2));
  w.unhold(2, old, 2, true, &work);
  w.end_capture(1);
  w.unhold(1, now, 2, false);
  w.g.fences().finish(1, w.g.fences().open(1));
  CHECK_EMPTY(w.g.set_budget(1));
  w.g.tick();
  CHECK(w.g.pool().backed() == 1 && fake_cuda_read_counters().bytes_held == kPage);
  CHECK_EMPTY(w.g.set_budget(3));
  CHECK(w.take(2, 2) == old);
  w.unhold(2, old, 2, true);
  w.finish();
}

}  // namespace

int main() {
  setvbuf(stdout, nullptr, _IONBF, 0);
  Driver driver(GPUSHARE_FAKE_CUDA);
  for (uint64_t seed = 0; seed < 20; ++seed) {
    who_tries_again_waits_too(driver, seed, kPages);
    who_tries_again_waits_too(driver, seed, 4 * kPages);
    others_wait_for_its_end(driver, seed, kPages);
    others_wait_for_its_end(driver, seed, 4 * kPages);
    nobody_waits_for_its_own(driver, seed);
    what_was_used_is_not_left_as_unused(driver, seed);
    a_slab_is_ready_as_a_whole(driver, seed);
    an_arena_keeps_no_page_that_is_not_ready(driver, seed);
    nothing_is_left_to_be_done(driver, seed);
    nothing_keeps_memory_that_is_gone(driver, seed);
    what_could_not_be_mapped_is_not_there(driver, seed, kPages);
    what_could_not_be_mapped_is_not_there(driver, seed, 4 * kPages);
    what_is_given_up_has_been_read(driver, seed);
    addresses_in_use_are_left_as_they_are(driver, seed);
  }
  printf("cuda given up: ok\n");
}
