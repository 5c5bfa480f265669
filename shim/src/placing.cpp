// Where blocks of middle size lie in regions: good fit by the pages that a place would charge.
#include <algorithm>
#include <bit>
#include <stdexcept>
#include <utility>

#include "heap_blocks.h"

namespace gpushare {

int Heap::list_for(uint64_t granules) {
  if (granules < kFine) return static_cast<int>(granules);
  int top = 63 - std::countl_zero(granules);
  int fine = static_cast<int>((granules >> (top - 3)) & (kFine - 1));
  return std::min((top - 2) * kFine + fine, kLists - 1);
}

Heap::Block* Heap::new_block() {
  if (!unused_) return new Block{};
  Block* b = std::exchange(unused_, unused_->next);
  *b = {};
  return b;
}

void Heap::delete_block(Block* b) {
  if (ended()) {  // nothing is allocated any more
    delete b;
    return;
  }
  b->next = unused_;
  unused_ = b;
}

void Heap::link(Block* b) {
  int l = list_for(b->granules);
  b->previous = nullptr;
  b->next = lists_[l];
  if (b->next) b->next->previous = b;
  lists_[l] = b;
  nonempty_[l / 64] |= uint64_t{1} << (l % 64);
}

void Heap::unlink(Block* b) {
  int l = list_for(b->granules);
  (b->previous ? b->previous->next : lists_[l]) = b->next;
  if (b->next) b->next->previous = b->previous;
  if (!lists_[l]) nonempty_[l / 64] &= ~(uint64_t{1} << (l % 64));
}

// What it costs to put a block here. A page that is not charged yet is worth kNewPage. A persistent
// block keeps a page for good that without it would soon be empty: that is worth a little more.
Heap::Place Heap::weigh(Block* b, uint32_t first, uint64_t granules, bool persistent) const {
  const Region* r = b->region;
  auto [from, to] = pages_of(first, granules);
  Place place{b, first, {0, from, to}, 0};
  auto add_missing = [&](uint32_t begin, uint32_t end) {
    if (begin >= end) return;
    if (place.missing.count == 0) place.missing.first = begin;
    place.missing.last = end - 1;
    place.missing.count += end - begin;
    place.cost += (end - begin) * kNewPage;
  };
  auto add_page = [&](uint32_t p) {
    const Region::Page& page = r->pages[p];
    if (!page.held) return add_missing(p, p + 1);
    bool others = page.blocks > 0 && page.persistent == 0;
    if (persistent && others) place.cost += kPinnedPage;
  };
  add_page(from);
  if (arena_) {
    for (uint32_t p = from + 1; p < to; ++p) add_page(p);
  } else {
    // On those in between no block lies, so none is held but the spare one.
    bool spare = spare_region_ == r && spare_page_ > from && spare_page_ < to;
    add_missing(from + 1, spare ? spare_page_ : to);
    if (spare) add_missing(spare_page_ + 1, to);
  }
  if (to > from) add_page(to);
  return place;
}

// The cheapest place at either end of one of the smallest free blocks that are large enough; of
// equal ones the tightest. `frugal` looks at all of them, for the fewest new pages and nothing
// else.
Heap::Place Heap::find(uint64_t granules, bool persistent, bool frugal) const {
  Place best;
  int looked_at = 0, too_small = 0, list = list_for(granules);
  persistent = persistent && !frugal;
  auto consider = [&](const Place& place) {
    bool better = !best.block || place.cost < best.cost ||
                  (place.cost == best.cost && place.block->granules < best.block->granules);
    if (better) best = place;
  };
  for (int word = list / 64; word < kLists / 64; ++word) {
    uint64_t bits = nonempty_[word];
    if (word == list / 64) bits &= ~uint64_t{0} << (list % 64);
    for (; bits; bits &= bits - 1)
      for (Block* b = lists_[word * 64 + std::countr_zero(bits)]; b; b = b->next) {
        if (b->granules < granules) {
          if (++too_small == kTooSmall && !frugal) break;
          continue;
        }
        consider(weigh(b, b->first, granules, persistent));
        if (best.cost == 0) return best;
        auto end = b->first + b->granules - static_cast<uint32_t>(granules);
        consider(weigh(b, end, granules, persistent));
        if (best.cost == 0 || (++looked_at == kCandidates && !frugal)) return best;
      }
  }
  return best;
}

// Makes [first, first + granules) of a free block a block of its own; what is left stays free.
Heap::Block* Heap::split(const Place& place, uint64_t granules) {
  Block* b = place.block;
  unlink(b);
  auto cut = [this](Block* left, uint32_t at) {
    Block* right = new_block();
    right->region = left->region;
    right->first = at;
    right->granules = left->first + left->granules - at;
    right->before = left;
    right->after = left->after;
    if (right->after) right->after->before = right;
    left->after = right;
    left->granules = at - left->first;
    right->region->at[at] = right;
    return right;
  };
  if (place.first > b->first) {
    Block* left = b;
    b = cut(left, place.first);
    link(left);
  }
  if (b->granules > granules) link(cut(b, b->first + static_cast<uint32_t>(granules)));
  return b;
}

bool Heap::stalls(const Place& place) const {
  const Missing& m = place.missing;
  PageIndex first = place.block->region->span.first + m.first;
  return m.count && governor_->stalls(first, m.last - m.first + 1);
}

// Where the CPU would have to wait until the device no longer uses an address, it takes new ones.
// Mostly it would not, and try_take() looks with a lock that it needs anyway: the best place comes
// first, and one that does not stall, if there is any, for who is to look `elsewhere`; true
// afterwards if the place needs no such look.
Heap::Place Heap::find_or_add(uint64_t granules, bool persistent, bool frugal, bool& elsewhere) {
  Place place = find(granules, persistent, frugal);
  if (place.block && (!elsewhere || !stalls(place))) return place;
  elsewhere = true;
  for (Region* r : regions_)
    if (r->used_blocks == 0 && !governor_->stalls(r->span.first, r->span.pages))
      return weigh(r->at[0], 0, granules, persistent);
  try {
    return weigh(add_region()->at[0], 0, granules, persistent);
  } catch (const OutOfMemory&) {
    if (!place.block) throw;
    return place;
  }
}

// A block, or a slab, comes to lie at the place, whose pages are held. On the way of each
// allocation.
__attribute__((always_inline)) inline Heap::Block* Heap::put(const Place& place, uint64_t bytes,
                                                             bool persistent, Slab* slab) {
  Block* b = split(place, (bytes + kGranule - 1) / kGranule);
  b->used = true;
  b->persistent = persistent;
  b->bytes = bytes;
  b->slab = slab;
  occupy(b);
  if (slab) {
    slab->block = b;
    slab->base = b->region->base + b->first * kGranule;
    for (uint32_t g = 0; g < b->granules; ++g) b->region->at[b->first + g] = b;
    slab->next = partial_[slab->size_class];
    if (slab->next) slab->next->previous = slab;
    partial_[slab->size_class] = slab;
  } else {
    b->region->at[b->first] = b;
    count_allocation(bytes, persistent ? kAmongPersistent : kAmongTransient);
  }
  return b;
}

Heap::Block* Heap::take_at(Region* r, uint64_t offset, const gs_arena_block& block, Slab* slab) {
  uint64_t granules = (block.bytes + kGranule - 1) / kGranule, first = offset / kGranule;
  uint64_t begin = first;
  while (!r->at[begin]) --begin;
  Block* free = r->at[begin];
  if (free->used || first + granules > uint64_t{free->first} + free->granules)
    throw std::logic_error("another block lies where one of the arena's was");
  Place place = weigh(free, static_cast<uint32_t>(first), granules, block.persistent);
  if (place.missing.count) throw std::logic_error("pages of the arena have left it");
  return put(place, block.bytes, block.persistent, slab);
}

void* Heap::allocate_block(uint64_t bytes, bool no_wait, bool persistent, Slab* slab) {
  uint64_t granules = (bytes + kGranule - 1) / kGranule;
  uint64_t charged = 0;  // by a wait, not yet used
  for (bool reclaimed = false, elsewhere = false, frugal = false;;) {
    std::unique_lock lock(mutex_);
    Place place;
    try {
      place = find_or_add(granules, persistent, frugal, elsewhere);
    } catch (...) {
      if (charged) governor_->uncharge(account_, charged);
      throw;
    }
    Missing missing = place.missing;
    if (missing.count && !reclaimed && counts_.foreign_freed.load(std::memory_order_relaxed)) {
      lock.unlock();
      reclaim(false);
      reclaimed = true;
      continue;
    }
    Governor::Took took = try_take(place.block->region, missing, charged, no_wait, elsewhere);
    if (took == Governor::Took::kStalls) {
      elsewhere = true;
      continue;
    }
    if (took == Governor::Took::kYes) {
      if (charged > missing.count) governor_->uncharge(account_, charged - missing.count);
      Block* b = put(place, bytes, persistent, slab);
      return b->region->base + b->first * kGranule;
    }
    lock.unlock();
    elsewhere = false;
    // The place may be another one after the wait: what was charged is kept, and settled above.
    try {
      if (reclaim_all()) continue;
      if (!std::exchange(frugal, true)) {
        drop_slack();
        continue;
      }
      governor_->charge(account_, missing.count - charged, no_wait, bytes);
    } catch (...) {
      if (charged) governor_->uncharge(account_, charged);
      throw;
    }
    charged = missing.count;
  }
}

void Heap::release_block(Block* b) {
  Region* r = b->region;
  vacate(b);
  for (uint32_t g = 1; g < b->granules && r->at[b->first + g] == b; ++g)
    r->at[b->first + g] = nullptr;
  b->used = false;
  b->slab = nullptr;
  auto absorb = [this, r](Block* left, Block* right) {
    left->granules += right->granules;
    left->after = right->after;
    if (right->after) right->after->before = left;
    r->at[right->first] = nullptr;
    delete_block(right);
  };
  if (b->after && !b->after->used) {
    unlink(b->after);
    absorb(b, b->after);
  }
  if (b->before && !b->before->used) {
    Block* left = b->before;
    unlink(left);
    absorb(left, b);
    b = left;
  }
  link(b);
  bool last = regions_.size() == 1 && !ended();
  if (r->used_blocks == 0 && !last && !arena_ && spare_region_ != r) remove_region(r);
}

}  // namespace gpushare
