// Pages that were given up a moment ago: to whom they are as they were, and that for everybody else
// it is as if they had been given up at once.
#include "../src/pool.h"
#include "check.h"

using namespace gpushare;

namespace {

constexpr uint64_t kPage = 4096, kBudget = 24;

// Addresses that nobody touches. No work ends before the test says so.
class Pages : public Device {
 public:
  char* reserve(size_t, size_t page_bytes) override { return reinterpret_cast<char*>(page_bytes); }
  bool aliases() const override { return aliased; }
  bool create(Frame) override { return memory-- > 0; }
  void destroy(Frame) override { ++destroyed; }
  void unmap(char*) override {}
  bool asynchronous() const override { return true; }
  Event record(Stream) override { return 1; }
  bool passed(Event e) override { return e == 0 || ended; }
  bool copy_out(char*, size_t) override { return true; }
  bool bring_back(char*, size_t) override { return true; }

  bool aliased = false, ended = false;
  int memory = 1000;  // frames
  int destroyed = 0;
};

// Two accounts, of which the first has two streams; stream 1 is of both.
struct World {
  explicit World(uint64_t addresses = 16 * kBudget)
      : fences(&device, 3, kBudget * kPage), pool(&device, &fences, kPage, kBudget, addresses) {
    for (Stream stream : {1, 12}) fences.add_stream(1, stream);
    fences.add_stream(2, 1);
  }
  PageIndex take(uint64_t n, uint32_t account, Stream stream) {
    work = {};
    return pool.hold_range(n, account, stream, work);
  }
  // Addresses that stay with account 1, which has held pages there on stream 12.
  PageIndex area_given_up(uint64_t n) {
    PageIndex first = pool.reserve_range(n);
    pool.hold(first, n, 1, 12, work);
    pool.unhold(first, n, 12);
    return first;
  }
  Pages device;
  Fences fences;
  Pool pool;
  DeviceWork work;
};

void who_gave_them_up_has_nothing_to_wait_for() {
  World w;
  PageIndex first = w.take(kBudget, 1, 12);
  w.pool.unhold_range(first, kBudget, 12);
  CHECK(w.take(kBudget, 1, 12) == first && w.work.empty());
  CHECK_EMPTY(w.pool.check(kBudget));
}

void another_stream_waits() {
  World w;
  w.pool.unhold_range(w.take(kBudget, 1, 12), kBudget, 12);
  w.take(kBudget, 1, 1);
  CHECK(w.work.waits.size() == 1 && w.work.waits[0].account == 1);
}

void another_account_waits_and_is_their_owner() {
  World w;
  w.pool.unhold_range(w.take(kBudget, 1, 1), kBudget, 1);
  w.take(kBudget, 2, 1);
  CHECK(w.work.waits.size() == 1 && w.work.waits[0].account == 1);
  CHECK(w.pool.counters().changed_owner == kBudget);
}

// A job that takes again what it gives up records no events, however much that is; nor does it stay
// away from what others wait for.
void what_is_taken_again_fills_no_batch() {
  World w;
  auto fills_one = [&] {
    uint64_t before = w.fences.counters().events;
    w.fences.close(1);
    return w.fences.counters().events > before;
  };
  PageIndex area = w.pool.reserve_range(4);
  DeviceWork work;
  w.pool.hold(area, 4, 1, 12, work);
  PageIndex first = w.take(4, 1, 12);
  for (int n = 0; n < 2; ++n) {
    w.pool.unhold_range(first, 4, 12);
    w.pool.unhold(area, 4, 12);
    w.pool.hold(area, 4, 1, 12, work);
    CHECK(w.take(4, 1, 12) == first);
    CHECK(!fills_one());
  }
  w.pool.unhold_range(first, 4, 12);
  CHECK(fills_one());
  w.pool.unhold(area, 4, 12);
  w.take(4, 1, 12);  // of the batch before: this one has four pages all the same
  CHECK(fills_one());
  w.pool.hold(area, 4, 1, 12, work);
  CHECK(!fills_one());
}

// The stream's handle may come again, for another stream.
void a_stream_that_is_gone_is_nobodys() {
  World w;
  PageIndex first = w.take(kBudget, 1, 12);
  w.pool.unhold_range(first, kBudget, 12);
  w.pool.forget_stream(12);
  w.take(kBudget, 1, 12);
  CHECK(w.work.waits.size() == 1);
}

// What serves a graph may run on any stream.
void for_a_graph_nothing_is_as_it_was() {
  World w;
  w.pool.unhold_range(w.take(kBudget, 1, Fences::kGone), kBudget, Fences::kGone);
  w.take(kBudget, 1, Fences::kGone);
  CHECK(w.work.waits.size() == 1);
  PageIndex first = w.pool.reserve_range(4);
  w.pool.unhold_range(0, kBudget, Fences::kGone);
  DeviceWork work;
  w.pool.hold(first, 4, 1, Fences::kGone, work);
  w.pool.unhold(first, 4, Fences::kGone);
  w.pool.hold(first, 4, 1, Fences::kGone, work = {});
  CHECK(work.waits.size() == 1);
}

// The pages before and behind those that are taken again stay given up.
void a_part_may_be_taken_again() {
  World w;
  DeviceWork work;
  PageIndex first = w.pool.reserve_range(kBudget);
  w.pool.hold(first, kBudget, 1, 12, work);
  w.pool.unhold(first, kBudget, 12);
  w.pool.hold(first + 4, 4, 1, 12, work);
  CHECK(work.empty());
  w.device.ended = true;
  w.take(kBudget - 4, 2, 1);
  CHECK(w.pool.counters().changed_owner == kBudget - 4);
  CHECK_EMPTY(w.pool.check(kBudget));
}

void nor_are_they_as_they_were_for_another_stream_or_account() {
  for (auto [account, stream] : {std::pair<uint32_t, Stream>{1, 1}, {2, 12}}) {
    World w;
    DeviceWork work;
    PageIndex first = w.area_given_up(4);
    w.pool.hold(first, 4, account, stream, work);
    CHECK(work.waits.size() == 1);
  }
}

// Not as a range: its addresses are still the owner's.
void addresses_stay_with_who_kept_them() {
  World w;
  PageIndex first = w.area_given_up(4);
  CHECK(w.take(4, 1, 12) != first);
  CHECK_EMPTY(w.pool.check(4));
}

void addresses_that_were_given_up_are_free() {
  World w(kBudget);
  w.pool.unhold_range(w.take(kBudget, 1, 12), kBudget, 12);
  CHECK(w.pool.free_ranges() == 1);
  CHECK(w.pool.reserve_range(kBudget) == 0);
  CHECK_EMPTY(w.pool.check(0));
}

void a_range_is_released_after_its_pages() {
  World w;
  PageIndex first = w.area_given_up(4);
  w.pool.release_range(first, 4);
  CHECK_EMPTY(w.pool.check(0));
  CHECK(w.pool.free_ranges() == 1);
}

void runs_are_no_more_than_a_few() {
  constexpr uint64_t kMany = 320;
  World w;
  Pool pool(&w.device, &w.fences, kPage, kMany, 16 * kMany);
  PageIndex first = pool.reserve_range(kMany);
  DeviceWork work;
  pool.hold(first, kMany, 1, 12, work);
  size_t most = 0;
  for (PageIndex n = 0; n < kMany; ++n) {
    pool.unhold(first + n, 1, 12);
    most = std::max(most, pool.recent_runs());
  }
  CHECK(most == 32);
  CHECK_EMPTY(pool.check(0));
  pool.hold(first, kMany, 1, 12, work);
  for (PageIndex n = 0; n < 32; ++n) pool.unhold(first + 10 * n, 10, 12);
  CHECK(pool.recent_runs() == 32);
  pool.hold(first + 5, 1, 1, 12, work);  // two are left of one
  CHECK(pool.recent_runs() <= 32);
  CHECK_EMPTY(pool.check(1));
}

void a_smaller_budget_gets_their_memory() {
  World w;
  w.device.ended = true;
  w.pool.unhold_range(w.take(kBudget, 1, 12), kBudget, 12);
  w.pool.set_budget(4);
  CHECK(w.pool.backed() == 4 && w.device.destroyed == kBudget - 4);
  CHECK_EMPTY(w.pool.check(0));
}

void what_leaves_is_only_what_is_held() {
  World w;
  w.device.ended = true;
  w.take(4, 1, 12);
  w.pool.unhold_range(w.take(6, 1, 12), 6, 12);
  CHECK(w.pool.save(1) == 4);
  CHECK_EMPTY(w.pool.check(0));
}

// Their memory is what is there to come back to.
void what_comes_back_may_have_their_memory() {
  World w;
  w.device.ended = true;
  w.take(4, 1, 12);
  CHECK(w.pool.save(1) == 4);
  w.pool.unhold_range(w.take(kBudget, 2, 1), kBudget, 1);
  w.pool.restore(1);
  CHECK(w.pool.backed() == kBudget);
  CHECK_EMPTY(w.pool.check(4));
}

// What is elsewhere is dropped at once; afterwards pages are put off again.
void saved_pages_are_given_up_at_once() {
  World w(kBudget);
  w.device.ended = true;
  PageIndex first = w.take(kBudget, 1, 12);
  for (bool comes_back : {false, true}) {
    CHECK(w.pool.save(1) == kBudget);
    if (comes_back) w.pool.restore(1);
    CHECK(w.pool.unhold_range(first, kBudget, 12) == (comes_back ? 0 : kBudget));
    CHECK(w.pool.recent_runs() == comes_back);
    CHECK_EMPTY(w.pool.check(0));
    CHECK(w.take(kBudget, 1, 12) == first);
    w.pool.unhold_range(first, kBudget, 12);
    CHECK(w.pool.recent_runs() == 1 && w.take(kBudget, 1, 12) == first);
  }
}

// Where nothing could be mapped.
void pages_without_memory_are_given_up_at_once() {
  World w;
  w.device.aliased = w.device.ended = true;
  Pool pool(&w.device, &w.fences, kPage, kBudget, 16 * kBudget);
  DeviceWork work;
  PageIndex first = pool.hold_range(4, 1, 12, work);
  CHECK(work.mappings.size() == 4);
  pool.give_up(work);
  pool.unhold_range(first, 4, 12);
  CHECK(pool.hold_range(4, 1, 12, work = {}) == first && work.mappings.size() == 4);
  pool.unhold_range(first, 4, 12);
  CHECK(pool.hold_range(4, 1, 12, work = {}) == first && work.empty());
}

// A device that has less memory than the budget says has what was just given up.
void a_frame_that_could_not_be_made_is_one_of_theirs() {
  World w;
  w.device.aliased = w.device.ended = true;
  Pool pool(&w.device, &w.fences, kPage, kBudget, 16 * kBudget);
  DeviceWork work, other;
  PageIndex theirs = pool.hold_range(4, 1, 12, work);
  PageIndex page = pool.hold_range(1, 2, 1, work);
  pool.unhold_range(theirs, 4, 12);
  CHECK(pool.replace(page, 1, other) && other.mappings.size() == 1);
}

// No look at what is as it was makes the CPU wait, nor settles it.
void what_is_as_it_was_does_not_stall() {
  World w;
  w.device.aliased = true;
  Pool pool(&w.device, &w.fences, kPage, kBudget, 16 * kBudget);
  DeviceWork work;
  PageIndex first = pool.reserve_range(kBudget);
  pool.hold(first, kBudget, 1, 12, work);
  pool.unhold(first, kBudget, 12);
  CHECK(!pool.stalls(first, kBudget));
  PageIndex theirs = pool.hold_range(kBudget, 2, 1, work = {});
  CHECK(pool.stalls(first, kBudget));
  pool.unhold_range(theirs, kBudget, 1);
  CHECK(!pool.stalls(first, kBudget));  // the memory that lies there can be had
}

}  // namespace

int main() {
  who_gave_them_up_has_nothing_to_wait_for();
  another_stream_waits();
  another_account_waits_and_is_their_owner();
  what_is_taken_again_fills_no_batch();
  a_stream_that_is_gone_is_nobodys();
  for_a_graph_nothing_is_as_it_was();
  a_part_may_be_taken_again();
  nor_are_they_as_they_were_for_another_stream_or_account();
  addresses_stay_with_who_kept_them();
  addresses_that_were_given_up_are_free();
  a_range_is_released_after_its_pages();
  runs_are_no_more_than_a_few();
  a_smaller_budget_gets_their_memory();
  what_leaves_is_only_what_is_held();
  what_comes_back_may_have_their_memory();
  saved_pages_are_given_up_at_once();
  pages_without_memory_are_given_up_at_once();
  a_frame_that_could_not_be_made_is_one_of_theirs();
  what_is_as_it_was_does_not_stall();
  printf("recent: ok\n");
}
