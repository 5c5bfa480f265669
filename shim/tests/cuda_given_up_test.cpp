// Pages whose last use could not be waited for, since its job captures a graph: who held them
// leaves them without having used them, and whoever gets their memory waits for who did use it.
#include <chrono>
#include <thread>
#include <vector>

#include "given_up.h"

namespace {

bool refused_for_the_capture(Heap& heap, uint64_t bytes) {
  try {
    heap.allocate(bytes, false, false);
    return false;
  } catch (const DeviceFailure& e) {
    return strstr(e.what(), "captures a CUDA graph");
  }
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
  }
  printf("cuda given up: ok\n");
}
