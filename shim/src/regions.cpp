// Regions, for blocks of middle size (placing.cpp): their pages are charged while a block lies on
// them.
#include <algorithm>
#include <utility>

#include "heap_blocks.h"

namespace gpushare {

Region* Heap::add_region() {
  uint64_t pages = region_bytes_ / page_bytes_;
  PageIndex first = governor_->reserve_range(pages);
  if (first == kNoPage) throw OutOfMemory("gpushare: out of memory: no address space is left");
  auto* r = new Region{};
  r->span = {this, first, static_cast<uint32_t>(pages), 0, r};
  r->base = governor_->pool().address(first);
  r->pages.assign(pages, {});
  r->at.assign(region_bytes_ / kGranule, nullptr);
  Block* b = new_block();
  b->region = r;
  b->granules = static_cast<uint32_t>(region_bytes_ / kGranule);
  r->at[0] = b;
  regions_.push_back(r);
  map_->set(first, pages, &r->span);
  link(b);
  count_reserved(static_cast<int64_t>(region_bytes_));
  return r;
}

void Heap::remove_region(Region* r) {
  Block* b = r->at[0];
  unlink(b);
  delete_block(b);
  map_->set(r->span.first, r->span.pages, nullptr);
  governor_->release_range(r->span.first, r->span.pages);
  count_reserved(-static_cast<int64_t>(region_bytes_));
  regions_.erase(std::find(regions_.begin(), regions_.end(), r));
  delete r;
}

// Charges and holds the missing pages. `charged` are charged already.
Governor::Took Heap::try_take(Region* r, const Missing& missing, uint64_t charged, bool no_wait,
                              bool may_stall) {
  using Took = Governor::Took;
  if (missing.count == 0) return Took::kYes;
  PageIndex first = r->span.first + missing.first;
  uint64_t more = missing.count - std::min<uint64_t>(missing.count, charged);
  Took took = governor_->try_hold(first, missing.last - missing.first + 1, more, account_, stream(),
                                  no_wait, may_stall, pending_);
  if (took != Took::kYes) return took;
  if (!pending_.empty()) unsettled_.store(true, std::memory_order_release);
  return took;
}

// The pages of a block that was just taken; they are charged. Between the first and the last one no
// other block lies.
void Heap::occupy(Block* b) {
  Region* r = b->region;
  auto [from, to] = pages_of(b->first, b->granules);
  ++r->used_blocks;
  auto add = [&](Region::Page& page) {
    ++page.blocks;
    page.persistent += b->persistent;
    page.held = true;
  };
  add(r->pages[from]);
  for (uint32_t p = from + 1; p < to; ++p) r->pages[p] = {1, b->persistent, true};
  if (to > from) add(r->pages[to]);
  if (spare_region_ == r && from <= spare_page_ && spare_page_ <= to) spare_region_ = nullptr;
}

// Held pages that no block lies on. Only after a failure is anything pending for such.
void Heap::leave(PageIndex first, uint64_t n) {
  if (pending_.empty()) return governor_->unhold(first, n, account_, stream_, false);
  DeviceWork undone = pending_.extract(first, n);
  governor_->unhold(first, n, account_, stream_, false, &undone);
}

void Heap::vacate(Block* b) {
  Region* r = b->region;
  auto [from, to] = pages_of(b->first, b->granules);
  --r->used_blocks;
  auto is_left = [&](Region::Page& page) {
    page.persistent -= b->persistent;
    return --page.blocks == 0;
  };
  for (uint32_t p = from + 1; p < to; ++p) r->pages[p].blocks = r->pages[p].persistent = 0;
  bool first = is_left(r->pages[from]), last = to > from ? is_left(r->pages[to]) : first;
  uint32_t begin = first ? from : from + 1, end = last ? to + 1 : to;
  if (begin >= end || arena_) return;
  if (!spare_region_ && !ended()) {
    spare_region_ = r;
    spare_page_ = begin++;
  }
  if (begin == end) return;
  for (uint32_t p = begin; p < end; ++p) r->pages[p].held = false;
  leave(r->span.first + begin, end - begin);
}

// An arena keeps its pages, but not those that no block lies on and that could not be made ready:
// the job may come to be copied out.
void Heap::drop_unready() {
  if (!arena_ || pending_.empty()) return;
  for (Region* r : regions_)
    for (uint32_t p = 0; p < r->span.pages; ++p) {
      Region::Page& page = r->pages[p];
      if (!page.held || page.blocks || !pending_.is_for(r->span.first + p)) continue;
      page.held = false;
      leave(r->span.first + p, 1);
    }
}

// What an arena kept is given up.
void Heap::drop_kept() {
  for (Region* r : regions_)
    for (uint32_t p = 0; p < r->span.pages; ++p) {
      if (!r->pages[p].held || r->pages[p].blocks) continue;
      r->pages[p].held = false;
      leave(r->span.first + p, 1);
    }
  for (auto [pages, first] : kept_extents_) {
    governor_->unhold(first, pages, account_, stream_, true);
    count_reserved(-static_cast<int64_t>(pages * page_bytes_));
  }
  kept_extents_.clear();
}

void Heap::drop_spare() {
  if (!spare_region_) return;
  Region* r = spare_region_;
  spare_region_ = nullptr;
  r->pages[spare_page_].held = false;
  leave(r->span.first + spare_page_, 1);
}

}  // namespace gpushare
