#include "heap.h"

#include <algorithm>
#include <bit>

namespace gpushare {

// A run of granules in a region, used or free.
struct Heap::Block {
  Region* region;
  uint32_t first, granules;
  bool used;
  Slab* slab;  // if it carries small blocks
  uint64_t bytes;
  Block *before, *after;   // neighbours by address
  Block *previous, *next;  // in the free list
};

struct Heap::Slab {
  Block* block;
  char* base;
  uint32_t size, count, free_count;  // bytes of a small block; blocks in all; free ones
  int size_class;
  Slab *previous, *next;  // among the slabs of its class that have room
  std::vector<uint16_t> free;
  std::vector<bool> used;
};

struct Region {
  Span span;
  char* base;
  uint32_t used_blocks;
  std::vector<uint32_t> blocks_on_page;
  std::vector<bool> held;        // page is charged
  std::vector<Heap::Block*> at;  // granule -> block that starts there, or slab that covers it
};

PageMap::PageMap(uint64_t pages) : spans_(new std::atomic<Span*>[pages]()) {}

void PageMap::set(PageIndex first, uint64_t n, Span* span) {
  for (uint64_t i = 0; i < n; ++i) spans_[first + i].store(span, std::memory_order_release);
}

namespace {

// Four classes per power of two from 64 bytes on; multiples of 64.
int class_of(uint64_t bytes) {
  if (bytes <= 256) return static_cast<int>((bytes + 63) / 64) - 1;
  int top = 63 - std::countl_zero(bytes - 1);  // 2^top <= bytes - 1 < 2^(top+1)
  int quarter = static_cast<int>(((bytes - 1) >> (top - 2)) & 3);
  return 4 + (top - 8) * 4 + quarter;
}

uint32_t class_bytes(int c) {
  if (c < 4) return static_cast<uint32_t>(64 * (c + 1));
  int top = 8 + (c - 4) / 4, quarter = (c - 4) % 4;
  return static_cast<uint32_t>((1u << top) + (quarter + 1) * (1u << (top - 2)));
}

uint64_t slab_bytes(uint32_t size) { return std::max<uint64_t>(64 << 10, uint64_t{size} * 16); }

}  // namespace

Heap::Heap(Governor* governor, PageMap* map, uint32_t account, Stream stream, uint64_t region_bytes)
    : governor_(governor),
      map_(map),
      account_(account),
      stream_(stream),
      page_bytes_(governor->pool().page_bytes()),
      region_bytes_(region_bytes),
      extent_least_(std::min<uint64_t>(kExtentLeast, region_bytes / 2)) {}

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
}

Heap::Allocation Heap::allocate(uint64_t bytes, bool no_wait) {
  if (bytes <= kSmallMost) return allocate_small(bytes, no_wait);
  if (bytes < extent_least_) return {allocate_block(bytes, no_wait, nullptr), bytes};
  return {allocate_extent(bytes, no_wait), bytes};
}

Heap::Allocation Heap::allocate_small(uint64_t bytes, bool no_wait) {
  int c = class_of(bytes);
  for (;;) {
    {
      std::lock_guard lock(mutex_);
      if (Slab* s = partial_[c]) {
        uint16_t i = s->free[--s->free_count];
        s->used[i] = true;
        if (s->free_count == 0) {
          partial_[c] = s->next;
          if (s->next) s->next->previous = nullptr;
        }
        return {s->base + uint64_t{i} * s->size, s->size};
      }
    }
    uint32_t size = class_bytes(c);
    auto* s = new Slab{};
    s->size = size;
    s->size_class = c;
    s->count = s->free_count = static_cast<uint32_t>(slab_bytes(size) / size);
    s->used.assign(s->count, false);
    s->free.resize(s->count);
    for (uint32_t i = 0; i < s->count; ++i) s->free[i] = static_cast<uint16_t>(s->count - 1 - i);
    try {
      allocate_block(slab_bytes(size), no_wait, s);
    } catch (...) {
      delete s;
      throw;
    }
  }
}

uint64_t Heap::release_small(Slab* s, uint64_t offset) {
  uint64_t i = offset / s->size;
  if (offset % s->size || i >= s->count || !s->used[i]) return 0;
  uint64_t bytes = s->size;
  s->used[i] = false;
  s->free[s->free_count++] = static_cast<uint16_t>(i);
  Slab*& head = partial_[s->size_class];
  if (s->free_count == 1) {
    s->previous = nullptr;
    s->next = head;
    if (head) head->previous = s;
    head = s;
  }
  // An empty slab goes, unless it is the only one of its class with room.
  if (s->free_count == s->count && (s->previous || s->next)) {
    (s->previous ? s->previous->next : head) = s->next;
    if (s->next) s->next->previous = s->previous;
    Block* block = s->block;
    delete s;
    block->slab = nullptr;
    release_block(block);
  }
  return bytes;
}

int Heap::list_for(uint64_t granules, bool round_up) {
  if (granules < kFine) return static_cast<int>(granules);
  int top = 63 - std::countl_zero(granules);
  uint64_t step = uint64_t{1} << (top - 3);
  if (round_up) {
    granules += step - 1;
    top = 63 - std::countl_zero(granules);
  }
  int fine = static_cast<int>((granules >> (top - 3)) & (kFine - 1));
  return std::min((top - 2) * kFine + fine, kLists - 1);
}

void Heap::link(Block* b) {
  int l = list_for(b->granules, false);
  b->previous = nullptr;
  b->next = lists_[l];
  if (b->next) b->next->previous = b;
  lists_[l] = b;
  nonempty_[l / 64] |= uint64_t{1} << (l % 64);
}

void Heap::unlink(Block* b) {
  int l = list_for(b->granules, false);
  (b->previous ? b->previous->next : lists_[l]) = b->next;
  if (b->next) b->next->previous = b->previous;
  if (!lists_[l]) nonempty_[l / 64] &= ~(uint64_t{1} << (l % 64));
}

Heap::Block* Heap::find(uint64_t granules) const {
  int l = list_for(granules, true);
  for (int word = l / 64; word < kLists / 64; ++word) {
    uint64_t bits = nonempty_[word];
    if (word == l / 64) bits &= ~uint64_t{0} << (l % 64);
    if (bits) return lists_[word * 64 + std::countr_zero(bits)];
  }
  return nullptr;
}

Heap::Block* Heap::split(Block* b, uint64_t granules) {
  unlink(b);
  if (b->granules > granules) {
    auto* rest = new Block{};
    rest->region = b->region;
    rest->first = b->first + static_cast<uint32_t>(granules);
    rest->granules = b->granules - static_cast<uint32_t>(granules);
    rest->before = b;
    rest->after = b->after;
    if (rest->after) rest->after->before = rest;
    b->after = rest;
    b->granules = static_cast<uint32_t>(granules);
    b->region->at[rest->first] = rest;
    link(rest);
  }
  return b;
}

void Heap::add_region() {
  uint64_t pages = region_bytes_ / page_bytes_;
  PageIndex first = governor_->reserve_range(pages);
  if (first == kNoPage) throw OutOfMemory("gpushare: out of memory: no address space is left");
  auto* r = new Region{};
  r->span = {this, first, static_cast<uint32_t>(pages), 0, r};
  r->base = governor_->pool().address(first);
  r->blocks_on_page.assign(pages, 0);
  r->held.assign(pages, false);
  r->at.assign(region_bytes_ / kGranule, nullptr);
  auto* b = new Block{};
  b->region = r;
  b->granules = static_cast<uint32_t>(region_bytes_ / kGranule);
  r->at[0] = b;
  regions_.push_back(r);
  map_->set(first, pages, &r->span);
  link(b);
}

void Heap::remove_region(Region* r) {
  Block* b = r->at[0];
  unlink(b);
  delete b;
  map_->set(r->span.first, r->span.pages, nullptr);
  governor_->release_range(r->span.first, r->span.pages);
  regions_.erase(std::find(regions_.begin(), regions_.end(), r));
  delete r;
}

uint64_t Heap::pages_missing(const Block* b, uint64_t granules) const {
  uint64_t from = b->first * kGranule / page_bytes_;
  uint64_t to = ((b->first + granules) * kGranule - 1) / page_bytes_;
  uint64_t missing = 0;
  for (uint64_t p = from; p <= to; ++p) missing += !b->region->held[p];
  return missing;
}

// The pages of a block that was just taken become held; they have been charged.
void Heap::occupy(Block* b) {
  Region* r = b->region;
  auto from = static_cast<uint32_t>(b->first * kGranule / page_bytes_);
  auto to =
      static_cast<uint32_t>(((b->first + uint64_t{b->granules}) * kGranule - 1) / page_bytes_);
  for (uint32_t p = from; p <= to; ++p) {
    if (r->blocks_on_page[p]++ == 0) {
      if (spare_region_ == r && spare_page_ == p) spare_region_ = nullptr;
    }
    if (!r->held[p]) {
      governor_->hold(r->span.first + p, 1, account_, stream_);
      r->held[p] = true;
    }
  }
  ++r->used_blocks;
}

void Heap::vacate(Block* b) {
  Region* r = b->region;
  auto from = static_cast<uint32_t>(b->first * kGranule / page_bytes_);
  auto to =
      static_cast<uint32_t>(((b->first + uint64_t{b->granules}) * kGranule - 1) / page_bytes_);
  --r->used_blocks;
  for (uint32_t p = from; p <= to; ++p) {
    if (--r->blocks_on_page[p] > 0) continue;
    if (!spare_region_) {
      spare_region_ = r;
      spare_page_ = p;
      continue;
    }
    r->held[p] = false;
    governor_->unhold(r->span.first + p, 1, account_, stream_, false);
  }
}

void Heap::drop_spare() {
  if (!spare_region_) return;
  Region* r = spare_region_;
  spare_region_ = nullptr;
  r->held[spare_page_] = false;
  governor_->unhold(r->span.first + spare_page_, 1, account_, stream_, false);
}

void* Heap::allocate_block(uint64_t bytes, bool no_wait, Slab* slab) {
  uint64_t granules = (bytes + kGranule - 1) / kGranule;
  uint64_t charged = 0;  // by a wait, not yet used
  for (;;) {
    std::unique_lock lock(mutex_);
    Block* b = find(granules);
    if (!b) {
      add_region();
      b = find(granules);
    }
    uint64_t missing = pages_missing(b, granules);
    bool enough = missing <= charged || governor_->try_charge(account_, missing - charged, no_wait);
    if (enough) {
      if (charged > missing) governor_->uncharge(account_, charged - missing);
      b = split(b, granules);
      b->used = true;
      b->bytes = bytes;
      b->slab = slab;
      occupy(b);
      char* address = b->region->base + b->first * kGranule;
      if (slab) {
        slab->block = b;
        slab->base = address;
        for (uint32_t g = 0; g < b->granules; ++g) b->region->at[b->first + g] = b;
        slab->next = partial_[slab->size_class];
        if (slab->next) slab->next->previous = slab;
        partial_[slab->size_class] = slab;
      } else {
        b->region->at[b->first] = b;
      }
      return address;
    }
    lock.unlock();
    // The place may be another one after the wait: what was charged is kept, and settled above.
    try {
      governor_->charge(account_, missing - charged, no_wait, bytes);
    } catch (...) {
      if (charged) governor_->uncharge(account_, charged);
      throw;
    }
    charged = missing;
  }
}

void Heap::release_block(Block* b) {
  Region* r = b->region;
  vacate(b);
  for (uint32_t g = 1; g < b->granules && r->at[b->first + g] == b; ++g)
    r->at[b->first + g] = nullptr;
  b->used = false;
  b->slab = nullptr;
  auto absorb = [r](Block* left, Block* right) {
    left->granules += right->granules;
    left->after = right->after;
    if (right->after) right->after->before = left;
    r->at[right->first] = nullptr;
    delete right;
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
  if (r->used_blocks == 0 && regions_.size() > 1 && spare_region_ != r) remove_region(r);
}

void* Heap::allocate_extent(uint64_t bytes, bool no_wait) {
  uint64_t pages = (bytes + page_bytes_ - 1) / page_bytes_;
  governor_->charge(account_, pages, no_wait, bytes);
  PageIndex first = governor_->hold_range(pages, account_, stream_);
  if (first == kNoPage) {
    governor_->uncharge(account_, pages);
    throw OutOfMemory("gpushare: out of memory: no address range is long enough");
  }
  auto* span = new Span{this, first, static_cast<uint32_t>(pages), bytes, nullptr};
  map_->set(first, pages, span);
  return governor_->pool().address(first);
}

uint64_t Heap::release_extent(Span* span) {
  uint64_t bytes = span->bytes;
  map_->set(span->first, span->pages, nullptr);
  governor_->unhold(span->first, span->pages, account_, stream_, true);
  delete span;
  return bytes;
}

uint64_t Heap::release(void* address, Span* span) {
  if (span->bytes) {
    if (address != governor_->pool().address(span->first)) return 0;
    return release_extent(span);
  }
  std::lock_guard lock(mutex_);
  Region* r = span->region;
  uint64_t offset = static_cast<uint64_t>(static_cast<char*>(address) - r->base);
  Block* b = r->at[offset / kGranule];
  if (!b || !b->used) return 0;
  if (b->slab) return release_small(b->slab, offset - b->first * kGranule);
  if (offset != b->first * kGranule) return 0;
  uint64_t bytes = b->bytes;
  release_block(b);
  return bytes;
}

void Heap::trim() {
  std::lock_guard lock(mutex_);
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
  std::vector<Region*> all = regions_;
  for (Region* r : all)
    if (r->used_blocks == 0) remove_region(r);
}

std::string Heap::check() {
  std::lock_guard lock(mutex_);
  for (Region* r : regions_) {
    uint64_t covered = 0, used = 0;
    std::vector<uint32_t> on_page(r->blocks_on_page.size(), 0);
    for (Block* b = r->at[0]; b; b = b->after) {
      if (b->first != covered) return "blocks of a region overlap or leave a gap";
      if (r->at[b->first] != b) return "a region lost a block";
      if (b->after && !b->used && !b->after->used) return "free neighbours are not joined";
      covered += b->granules;
      used += b->used;
      if (!b->used) continue;
      uint64_t to = ((b->first + uint64_t{b->granules}) * kGranule - 1) / page_bytes_;
      for (uint64_t p = b->first * kGranule / page_bytes_; p <= to; ++p) ++on_page[p];
    }
    if (covered != r->at.size()) return "blocks of a region don't cover it";
    if (used != r->used_blocks || on_page != r->blocks_on_page)
      return "a region's counts are wrong";
    for (size_t p = 0; p < on_page.size(); ++p) {
      bool spare = spare_region_ == r && spare_page_ == p;
      if (r->held[p] != (on_page[p] > 0 || spare)) return "a region's charged pages are wrong";
    }
  }
  return "";
}

}  // namespace gpushare
