// Small blocks: size classes in slabs.
#include <algorithm>
#include <bit>
#include <stdexcept>

#include "heap_blocks.h"

namespace gpushare {

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

Heap::Allocation Heap::allocate_small(uint64_t bytes, bool no_wait) {
  int c = class_of(bytes);
  for (;;) {
    {
      std::lock_guard lock(mutex_);
      if (Slab* s = partial_[c]) {
        uint16_t i = s->free[s->free_count - 1];
        use_small(s, i);
        return {s->base + uint64_t{i} * s->size, s->size};
      }
    }
    Slab* s = new_slab(c);
    try {
      allocate_block(slab_bytes(s->size), no_wait, true, s);
    } catch (...) {
      delete s;
      throw;
    }
  }
}

Heap::Slab* Heap::new_slab(int size_class) {
  auto* s = new Slab{};
  s->size = class_bytes(size_class);
  s->size_class = size_class;
  s->count = s->free_count = static_cast<uint32_t>(slab_bytes(s->size) / s->size);
  s->used.assign(s->count, false);
  s->free.resize(s->count);
  for (uint32_t i = 0; i < s->count; ++i) s->free[i] = static_cast<uint16_t>(s->count - 1 - i);
  return s;
}

// The last free block of a slab with room.
void Heap::use_small(Slab* s, uint32_t i) {
  --s->free_count;
  s->used[i] = true;
  if (s->free_count == 0) {
    (s->previous ? s->previous->next : partial_[s->size_class]) = s->next;
    if (s->next) s->next->previous = s->previous;
  }
  count_allocation(s->size, kInSlab);
}

void Heap::retake_small(Region* r, const gs_arena_block& block) {
  char* base = reinterpret_cast<char*>(block.slab);
  uint64_t offset = static_cast<uint64_t>(base - r->base);
  Block* here = r->at[offset / kGranule];
  Slab* s = here && here->used ? here->slab : nullptr;
  if (!s) {
    s = new_slab(class_of(block.bytes));
    gs_arena_block whole = block;
    whole.bytes = slab_bytes(s->size), whole.persistent = true;
    try {
      take_at(r, offset, whole, s);
    } catch (...) {
      delete s;
      throw;
    }
  }
  uint64_t i = (block.address - block.slab) / s->size;
  auto room = s->free.begin() + s->free_count;
  auto free = std::find(s->free.begin(), room, i);
  if (s->base != base || s->size != block.bytes || free == room)
    throw std::logic_error("another small block lies where one of the arena's was");
  std::iter_swap(free, room - 1);
  use_small(s, static_cast<uint32_t>(i));
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
  if (s->free_count == s->count && (s->previous || s->next || ended())) {
    (s->previous ? s->previous->next : head) = s->next;
    if (s->next) s->next->previous = s->previous;
    Block* block = s->block;
    delete s;
    block->slab = nullptr;
    release_block(block);
  }
  return bytes;
}

}  // namespace gpushare
