// Pages whose memory could not be put where they are: none of it is lost, nothing is left where it
// was to lie, and who used it before has ended with it when another one gets it. What a smaller
// budget has no room for goes.
#include "given_up.h"

namespace {

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

// The memory that was freed first may still be in use, for as long as its job captures.
void what_must_stay_keeps_nothing_else(const Driver& driver, uint64_t seed) {
  World w(driver, seed);
  PageIndex stays = w.take(1, 2), goes = w.take(2, 2);
  w.begin_capture(1);
  w.unhold(1, stays, 2, true);
  w.unhold(2, goes, 2, true);
  w.g.fences().finish(2, w.g.fences().open(2));
  CHECK_EMPTY(w.g.set_budget(3));
  CHECK(w.g.pool().backed() == 3);
  w.end_capture(1);
  w.finish();
}

void who_frees_nothing_more_gives_back(const Driver& driver, uint64_t seed) {
  World w(driver, seed);
  PageIndex last = w.take(1, 2);
  write(w.streams[0], w.g.pool().address(last), 2 * kPage, 11);
  w.unhold(1, last, 2, true);
  CHECK_EMPTY(w.g.set_budget(1));
  CHECK(w.g.pool().backed() == 2);
  w.g.tick();
  fake_cuda_run_all();
  w.g.tick();
  CHECK(w.g.pool().backed() == 1);
  w.finish();
}

}  // namespace

int main() {
  setvbuf(stdout, nullptr, _IONBF, 0);
  Driver driver(GPUSHARE_FAKE_CUDA);
  for (uint64_t seed = 0; seed < 20; ++seed) {
    nothing_keeps_memory_that_is_gone(driver, seed);
    what_could_not_be_mapped_is_not_there(driver, seed, kPages);
    what_could_not_be_mapped_is_not_there(driver, seed, 4 * kPages);
    what_is_given_up_has_been_read(driver, seed);
    addresses_in_use_are_left_as_they_are(driver, seed);
    what_must_stay_keeps_nothing_else(driver, seed);
    who_frees_nothing_more_gives_back(driver, seed);
  }
  printf("cuda unplaced: ok\n");
}
