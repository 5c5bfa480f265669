// A heap as a whole, and its extents. Small blocks are in slabs.cpp, middle ones in placing.cpp.
#include "heap.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <optional>
#include <thread>

#include "gil.h"
#include "heap_blocks.h"

namespace gpushare {

namespace {
constexpr auto kBetweenTries = std::chrono::milliseconds(1);
}

PageMap::PageMap(uint64_t pages) : spans_(new std::atomic<Span*>[pages]()) {}

void PageMap::set(PageIndex first, uint64_t n, Span* span) {
  for (uint64_t i = 0; i < n; ++i) spans_[first + i].store(span, std::memory_order_release);
}

Heap::Heap(Governor* governor, PageMap* map, uint32_t account, Stream stream, uint32_t arena,
           uint64_t region_bytes)
    : governor_(governor),
      map_(map),
      account_(account),
      own_(stream),
      stream_(arena ? Fences::kGone : stream),
      arena_(arena),
      page_bytes_(governor->pool().page_bytes()),
      granules_shift_(std::countr_zero(page_bytes_ / kGranule)),
      region_bytes_(region_bytes),
      extent_least_(std::min<uint64_t>(kExtentLeast, region_bytes / 2)),
      counts_(governor->account(account)),
      mutex_(counts_.heaps) {}

Heap::~Heap() {
  for (Region* r : regions_) {
    for (Block* b = r->at[0]; b;) {
      Block* after = b->after;
      delete b->slab;
      delete b;
      b = after;
    }
    delete r;
  }
  delete_unused();
}

void Heap::delete_unused() {
  while (unused_) delete std::exchange(unused_, unused_->next);
}

namespace {
// For one writer at a time: no locked instruction.
template <typename T>
T add(std::atomic<T>& counter, T change) {
  T sum = counter.load(std::memory_order_relaxed) + change;
  counter.store(sum, std::memory_order_relaxed);
  return sum;
}
}  // namespace

void Heap::count_allocation(uint64_t bytes, Lies lies) {
  int64_t live = add(counts_.live, static_cast<int64_t>(bytes));
  if (lies != kInSlab) add(counts_.live_at[lies], static_cast<int64_t>(bytes));
  if (live > counts_.live_peak.load(std::memory_order_relaxed))
    counts_.live_peak.store(live, std::memory_order_relaxed);
  uint64_t made = add(counts_.allocations, uint64_t{1});
  counts_.blocks.allocated(bytes, live, made - counts_.frees.load(std::memory_order_relaxed));
}

void Heap::count_free(uint64_t bytes, Lies lies) {
  add(counts_.live, -static_cast<int64_t>(bytes));
  if (lies != kInSlab) add(counts_.live_at[lies], -static_cast<int64_t>(bytes));
  add(counts_.frees, uint64_t{1});
}

void Heap::count_reserved(int64_t bytes) { add(counts_.reserved, bytes); }

Heap::Allocation Heap::allocate(uint64_t bytes, bool no_wait, bool persistent) {
  try {
    return try_allocate(bytes, no_wait, persistent);
  } catch (const CaptureUnderWay&) {
  }
  return allocate_after_capture(bytes, no_wait, persistent);
}

__attribute__((always_inline)) inline Heap::Allocation Heap::try_allocate(uint64_t bytes,
                                                                          bool no_wait,
                                                                          bool persistent) {
  Allocation made = allocate_any(bytes, no_wait, persistent);
  if (!unsettled_.load(std::memory_order_acquire)) return made;
  settle_for(made);
  return made;
}

// What was taken in vain has been given up each time. The account's own capture does not end while
// this thread waits here.
Heap::Allocation Heap::allocate_after_capture(uint64_t bytes, bool no_wait, bool persistent) {
  auto longest = governor_->fences().longest_capture;
  if (no_wait) longest = std::min(longest, Governor::longest_with_lock);
  auto end = std::chrono::steady_clock::now() + longest;
  ++counts_.cpu_waits;
  for (;;) {
    {
      GilReleased released;
      std::this_thread::sleep_for(kBetweenTries);
    }
    try {
      return try_allocate(bytes, no_wait, persistent);
    } catch (const CaptureUnderWay& capture) {
      if (capture.by == account_ || std::chrono::steady_clock::now() >= end) throw;
    }
  }
}

Heap::Allocation Heap::allocate_any(uint64_t bytes, bool no_wait, bool persistent) {
  if (ended()) throw DeviceFailure("gpushare: the stream has been destroyed");
  if (bytes <= kSmallMost) return allocate_small(bytes, no_wait);
  if (bytes < extent_least_) return {allocate_block(bytes, no_wait, persistent, nullptr), bytes};
  return {allocate_extent(bytes, no_wait), bytes};
}

void* Heap::allocate_extent(uint64_t bytes, bool no_wait) {
  uint64_t pages = (bytes + page_bytes_ - 1) / page_bytes_;
  PageIndex first = take_kept(&pages);
  bool kept = first != kNoPage;
  if (!kept) first = take_extent(pages, no_wait, bytes);
  auto* span = new Span{this, first, static_cast<uint32_t>(pages), bytes, nullptr};
  map_->set(first, pages, span);
  std::lock_guard lock(mutex_);
  if (arena_) extents_[first] = span;
  count_allocation(bytes, kInExtent);
  if (!kept) count_reserved(static_cast<int64_t>(pages * page_bytes_));
  return governor_->pool().address(first);
}

// One that was freed in the same arena, if it is not much too large.
PageIndex Heap::take_kept(uint64_t* pages) {
  if (!arena_) return kNoPage;
  std::lock_guard lock(mutex_);
  auto fit = kept_extents_.lower_bound(*pages);
  if (fit == kept_extents_.end() || fit->first > *pages + *pages / 4) return kNoPage;
  PageIndex first = fit->second;
  *pages = fit->first;
  kept_extents_.erase(fit);
  return first;
}

PageIndex Heap::take_extent(uint64_t pages, bool no_wait, uint64_t bytes) {
  reclaim(false);
  DeviceWork work;
  PageIndex first = governor_->try_hold_range(pages, account_, stream(), no_wait, work);
  if (first == kNoPage) {
    if (counts_.foreign_freed.load(std::memory_order_relaxed) > 0) reclaim_all();
    drop_slack();
    governor_->charge(account_, pages, no_wait, bytes);
    first = governor_->hold_range(pages, account_, stream(), work);
  }
  if (first == kNoPage) {
    governor_->uncharge(account_, pages);
    throw OutOfMemory("gpushare: out of memory: no address range is long enough");
  }
  if (!work.empty()) {
    try {
      std::optional<GilReleased> released;
      if (work.takes_long()) released.emplace();
      governor_->perform(work, account_, stream());
    } catch (...) {
      governor_->unhold(first, pages, account_, stream_, true, &work);
      throw;
    }
  }
  return first;
}

uint64_t Heap::release_extent(Span* span, bool count) {
  if (arena_) {
    std::lock_guard lock(mutex_);
    if (arena_) return keep_extent(span, count);
  }
  uint64_t bytes = span->bytes;
  map_->set(span->first, span->pages, nullptr);
  governor_->unhold(span->first, span->pages, account_, stream_, true);
  std::lock_guard lock(mutex_);
  count_reserved(-static_cast<int64_t>(span->pages * page_bytes_));
  delete span;
  if (count) count_free(bytes, kInExtent);
  return bytes;
}

// With the lock in hand. On the way of each free.
__attribute__((always_inline)) inline uint64_t Heap::release_in_region(void* address, Region* r,
                                                                       bool count) {
  uint64_t offset = static_cast<uint64_t>(static_cast<char*>(address) - r->base);
  Block* b = r->at[offset / kGranule];
  if (!b || !b->used) return 0;
  uint64_t bytes = 0;
  Lies lies = b->slab ? kInSlab : b->persistent ? kAmongPersistent : kAmongTransient;
  if (b->slab) {
    bytes = release_small(b->slab, offset - b->first * kGranule);
  } else if (offset == b->first * kGranule) {
    bytes = b->bytes;
    release_block(b);
  }
  if (bytes && count) count_free(bytes, lies);
  return bytes;
}

uint64_t Heap::release_now(void* address, Span* span, bool count) {
  if (span->bytes) {
    if (address != governor_->pool().address(span->first)) return 0;
    return release_extent(span, count);
  }
  std::lock_guard lock(mutex_);
  return release_in_region(address, span->region, count);
}

// With the lock in hand, so that nobody finds the block in use when it is not noted any more. Not
// of an extent whose pages leave; counted it was before.
bool Heap::release_at_once(void* address, Span* span) {
  if (span->bytes && !arena_) return false;
  if (span->bytes)
    keep_extent(span, false);
  else
    release_in_region(address, span->region, false);
  return true;
}

uint64_t Heap::bytes_at(void* address, Span* span) {
  std::lock_guard lock(mutex_);
  return block_at(address, span).bytes;
}

uint64_t Heap::block_around(const void* address, Span* span, uint64_t* offset) {
  std::lock_guard lock(mutex_);
  const char* base = governor_->pool().address(span->first);
  uint64_t at = static_cast<uint64_t>(static_cast<const char*>(address) - base);
  *offset = at;
  if (span->bytes) return at < span->bytes ? span->bytes : 0;
  uint64_t granule = at / kGranule;
  while (!span->region->at[granule]) --granule;
  const Block* b = span->region->at[granule];
  if (!b->used) return 0;
  *offset = at - b->first * kGranule;
  if (!b->slab) return *offset < b->bytes ? b->bytes : 0;
  uint64_t i = *offset / b->slab->size;
  *offset %= b->slab->size;
  return i < b->slab->count && b->slab->used[i] ? b->slab->size : 0;
}

void Heap::trim() {
  // What leaves in a capture can't be fenced: whoever got it could not wait for its last use.
  if (counts_.captures.load(std::memory_order_relaxed)) return;
  try {
    reclaim(true);
  } catch (const DeviceFailure&) {
    // They stay until the next time; whoever allocates is told.
  }
  std::lock_guard turn(settling_);
  std::lock_guard lock(mutex_);
  drop_empty();
}

// Before it waits for memory, or does without. Not where that would take a wait of its own: the
// turn may be another thread's, which is at work on the device.
void Heap::drop_slack() {
  if (arena_ || counts_.captures.load(std::memory_order_relaxed)) return;
  std::unique_lock turn(settling_, std::try_to_lock);
  if (!turn.owns_lock()) return;
  std::lock_guard lock(mutex_);
  drop_empty();
}

// With both locks in hand: nobody is at work on pages that are given up.
void Heap::drop_empty() {
  for (Slab*& head : partial_) {
    for (Slab* s = head; s;) {
      Slab* next = s->next;
      if (s->free_count == s->count) {
        (s->previous ? s->previous->next : head) = next;
        if (next) next->previous = s->previous;
        Block* block = s->block;
        delete s;
        block->slab = nullptr;
        release_block(block);
      }
      s = next;
    }
  }
  drop_spare();
  if (ended()) delete_unused();
  if (arena_) return;
  std::vector<Region*> all = regions_;
  for (Region* r : all)
    if (r->used_blocks == 0) remove_region(r);
}

std::string Heap::check() {
  std::lock_guard lock(mutex_);
  for (Region* r : regions_) {
    uint64_t covered = 0, used = 0;
    std::vector<Region::Page> pages(r->pages.size());  // as they should be
    for (Block* b = r->at[0]; b; b = b->after) {
      if (b->first != covered) return "blocks of a region overlap or leave a gap";
      if (r->at[b->first] != b) return "a region lost a block";
      if (b->after && !b->used && !b->after->used) return "free neighbours are not joined";
      covered += b->granules;
      used += b->used;
      if (!b->used) continue;
      uint64_t to = ((b->first + uint64_t{b->granules}) * kGranule - 1) / page_bytes_;
      for (uint64_t p = b->first * kGranule / page_bytes_; p <= to; ++p)
        ++pages[p].blocks, pages[p].persistent += b->persistent;
    }
    if (covered != r->at.size()) return "blocks of a region don't cover it";
    if (used != r->used_blocks) return "a region's count of blocks is wrong";
    for (size_t p = 0; p < pages.size(); ++p) {
      const Region::Page &is = r->pages[p], &should = pages[p];
      if (is.blocks != should.blocks || is.persistent != should.persistent)
        return "a region's counts are wrong";
      bool spare = spare_region_ == r && spare_page_ == p;
      if (is.held != (is.blocks > 0 || spare) && !(arena_ && is.held))
        return "a region's charged pages are wrong";
    }
  }
  return "";
}

}  // namespace gpushare
