// What a heap is made of. None of it lies inside the pool's bytes.
#pragma once

#include <vector>

#include "heap.h"

namespace gpushare {

// A run of granules in a region, used or free.
struct Heap::Block {
  Region* region;
  uint32_t first, granules;
  bool used, persistent;
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
  struct Page {
    uint32_t blocks, persistent;  // that lie on it, and how many of these are
    bool held;                    // it is charged
  };
  std::vector<Page> pages;
  std::vector<Heap::Block*> at;  // granule -> block that starts there, or slab that covers it
};

}  // namespace gpushare
