// The blocks of one job on one stream.
//
//   up to 32 KiB   size classes in slabs; a slab is a block of the next level
//   up to 32 MiB   good fit (two-level segregated lists) in regions, whose pages are charged when a
//                  block first touches them and given up when the last one leaves; the place that
//                  needs the fewest new pages, and where persistent blocks keep to themselves
//   above          an extent of its own, given back to the pool at once
//
// A heap serves one stream, so what it reuses itself needs no wait on the device. All its state
// lies outside the pool's bytes.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "governor.h"

namespace gpushare {

class Heap;

// What lies at a page's address. A region or extent is found by the page of any byte in it.
struct Span {
  Heap* heap;
  PageIndex first;
  uint32_t pages;
  uint64_t bytes;  // of the block, if an extent; 0: a region
  struct Region* region;
};

// Page -> span, for finding the owner of an address without a lock.
class PageMap {
 public:
  explicit PageMap(uint64_t pages);
  void set(PageIndex first, uint64_t n, Span* span);
  Span* find(PageIndex page) const { return spans_[page].load(std::memory_order_acquire); }

 private:
  std::unique_ptr<std::atomic<Span*>[]> spans_;
};

// Blocks of the account that were freed while other streams used them become free: those whose uses
// have ended; with `wait` all but those of arenas, after the streams of their heaps were made to
// wait for the uses. False if there was none. May throw DeviceFailure with `wait`.
bool reclaim(Governor& governor, Account& account, bool wait);
// The CPU waits for the uses of those in arenas, with no lock in hand, so that they can be
// reclaimed. May throw DeviceFailure.
void finish_in_arenas(Governor& governor, Account& account);

class Heap {
 public:
  static constexpr uint64_t kGranule = 2048;
  static constexpr uint64_t kSmallMost = 32 << 10;
  static constexpr uint64_t kExtentLeast = 32 << 20;

  // With an arena it serves a CUDA graph: what is freed can be allocated again for the same graph,
  // but no page leaves before dissolve(), since each replay uses what was allocated in the capture.
  Heap(Governor* governor, PageMap* map, uint32_t account, Stream stream, uint32_t arena,
       uint64_t region_bytes);
  ~Heap();

  uint32_t account() const { return account_; }
  // kGone for an arena: its graph may run on any stream.
  Stream stream() const { return stream_.load(std::memory_order_relaxed); }
  // Once its stream is gone another one may have the same handle.
  bool serves(Stream stream) const { return stream == own_ && !ended(); }
  Stream waits_on() const { return own_; }
  bool is_arena() const { return arena_.load(std::memory_order_relaxed); }
  // Its stream is gone, and its graph, if it was one's.
  bool ended() const { return stream() == Fences::kGone && !arena_; }
  struct Allocation {
    void* address;
    uint64_t bytes;  // what release() will return: the size class of a small block, else as asked
  };
  // May wait for pages unless no_wait; throws OutOfMemory. `persistent`: expected to outlive its
  // iteration.
  Allocation allocate(uint64_t bytes, bool no_wait, bool persistent);
  // Never waits. Returns the block's bytes; 0 for an address that is no block's start.
  uint64_t release(void* address, Span* span) {
    bool defers = counts_.foreign.load(std::memory_order_relaxed) > 0 ||
                  (!arena_ && counts_.captures.load(std::memory_order_relaxed) > 0);
    return defers ? release_or_defer(address, span) : release_now(address, span, true);
  }
  uint64_t release_now(void* address, Span* span, bool count);
  bool release_at_once(void* address, Span* span);
  uint64_t defer(void* address, UsedElsewhere& use);
  void queue(void* address, Batch batch, uint64_t bytes);
  // Another stream uses the block too: once it is freed, nobody gets it before that use has ended.
  // False for an address that is no block's start.
  bool note_use(void* address, Span* span);
  // Bytes of the block that starts at the address; 0: none does.
  uint64_t bytes_at(void* address, Span* span);
  // The same of the block that the address lies in, and where in it.
  uint64_t block_around(const void* address, Span* span, uint64_t* offset);
  // The stream is gone; blocks can be released but no longer be allocated.
  void end_stream();
  // The graph is gone.
  void dissolve();
  // Of an arena, with the lock in hand: its blocks that are in use; all of them become free; one of
  // them is in use again. retake() throws std::logic_error where something else lies there.
  void list_used(std::vector<gs_arena_block>& out) const;
  void release_used();
  void retake(const gs_arena_block& block);
  // Gives up regions and pages that hold no block.
  void trim();
  std::string check();

  // The account's lock is in hand. All that the heap holds but its extents, in pieces; an extent.
  void list(std::vector<gs_piece>& out) const;
  void list_extent(const Span* span, std::vector<gs_piece>& out) const;

  struct Block;

 private:
  struct Slab;
  static constexpr int kFine = 8;  // lists per power of two
  static constexpr int kLists = 16 * kFine;
  static constexpr int kClasses = 40;
  static constexpr int kCandidates = 16;                    // free blocks that are compared
  static constexpr int kTooSmall = 64;                      // looked at in vain, in the first list
  static constexpr uint32_t kNewPage = 2, kPinnedPage = 3;  // costs of a place, see weigh()

  Allocation try_allocate(uint64_t bytes, bool no_wait, bool persistent);
  Allocation allocate_after_capture(uint64_t bytes, bool no_wait, bool persistent);
  Allocation allocate_small(uint64_t bytes, bool no_wait);
  Allocation allocate_any(uint64_t bytes, bool no_wait, bool persistent);
  void* allocate_block(uint64_t bytes, bool no_wait, bool persistent, Slab* slab);
  void* allocate_extent(uint64_t bytes, bool no_wait);
  PageIndex take_extent(uint64_t pages, bool no_wait, uint64_t bytes);
  PageIndex take_kept(uint64_t* pages);
  uint64_t release_or_defer(void* address, Span* span);
  struct Found {
    uint64_t bytes = 0;  // 0: no block starts there
    Lies lies = kInSlab;
  };
  Found block_at(void* address, Span* span) const;
  uint64_t release_small(Slab* slab, uint64_t offset);
  void release_block(Block* block);
  uint64_t release_in_region(void* address, Region* region, bool count);
  uint64_t release_extent(Span* span, bool count);
  uint64_t keep_extent(Span* span, bool count);
  void retake_extent(const gs_arena_block& block);
  Block* take_at(Region* region, uint64_t offset, const gs_arena_block& block, Slab* slab);
  void retake_small(Region* region, const gs_arena_block& block);
  static Slab* new_slab(int size_class);
  void use_small(Slab* slab, uint32_t index);
  bool reclaim_all();
  bool reclaim(bool wait) { return gpushare::reclaim(*governor_, counts_, wait); }
  gs_use use_of(const void* address) const;
  gs_piece piece(const char* address, uint64_t bytes, uint64_t asked) const;
  void list_slab(const Slab* slab, std::vector<gs_piece>& out) const;
  void list_run(const Region* region, uint64_t from, uint64_t to, std::vector<gs_piece>& out) const;
  void settle(std::unique_lock<std::mutex>& turn);
  void settle_for(const Allocation& made);
  bool is_pending(const Allocation& made);
  std::pair<PageIndex, PageIndex> pages_under(const Allocation& made) const;
  void leave(PageIndex first, uint64_t n);
  void drop_empty();
  void drop_slack();
  void drop_kept();
  void drop_unready();
  // With the lock in hand.
  void count_allocation(uint64_t bytes, Lies lies);
  void count_free(uint64_t bytes, Lies lies);
  void count_reserved(int64_t bytes);

  struct Missing {
    uint32_t count, first, last;  // pages of a region
  };
  // Where a block could go: at the begin or the end of a free one.
  struct Place {
    Block* block = nullptr;
    uint32_t first = 0;  // granule of the region
    Missing missing = {};
    uint32_t cost = 0;
  };
  Place find(uint64_t granules, bool persistent, bool frugal) const;
  Place weigh(Block* block, uint32_t first, uint64_t granules, bool persistent) const;
  Block* split(const Place& place, uint64_t granules);
  Block* put(const Place& place, uint64_t bytes, bool persistent, Slab* slab);
  Region* add_region();
  bool stalls(const Place& place) const;
  Place find_or_add(uint64_t granules, bool persistent, bool frugal, bool& elsewhere);
  void remove_region(Region* region);
  void link(Block* block);
  void unlink(Block* block);
  Governor::Took try_take(Region* region, const Missing& missing, uint64_t charged, bool no_wait,
                          bool may_stall);
  // First and last page that granules of a region touch.
  std::pair<uint32_t, uint32_t> pages_of(uint32_t first, uint64_t granules) const {
    return {first >> granules_shift_,
            static_cast<uint32_t>((first + granules - 1) >> granules_shift_)};
  }
  void occupy(Block* block);
  void vacate(Block* block);
  void drop_spare();
  static int list_for(uint64_t granules);
  Block* new_block();
  void delete_block(Block* block);
  void delete_unused();

  Governor* governor_;
  PageMap* map_;
  uint32_t account_;
  Stream own_;  // that blocks are allocated for
  std::atomic<Stream> stream_;
  std::atomic<uint32_t> arena_;
  uint64_t page_bytes_;
  int granules_shift_;  // of a page, two to this
  uint64_t region_bytes_, extent_least_;
  Account& counts_;
  std::mutex& mutex_;  // the account's, so that counting what all its heaps do costs no more
  Block* lists_[kLists] = {};
  uint64_t nonempty_[kLists / 64] = {};
  Slab* partial_[kClasses] = {};  // slabs with room, per class
  std::vector<Region*> regions_;
  Block* unused_ = nullptr;  // descriptors to use again
  // One emptied page stays charged, so that a block that comes and goes costs no trip to the pool.
  Region* spare_region_ = nullptr;
  uint32_t spare_page_ = 0;
  // Of an arena: those in use, by their first page; pages and first page of those that are free.
  std::map<PageIndex, Span*> extents_;
  std::multimap<uint64_t, PageIndex> kept_extents_;

  // What the device must do before blocks on pages that were just held are used. Whoever allocates
  // meanwhile waits for it, since its block may lie on such a page.
  std::atomic<bool> unsettled_{false};
  std::mutex settling_;  // before mutex_
  DeviceWork pending_;
};

}  // namespace gpushare
