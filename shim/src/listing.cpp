// What lies where, for whoever asks: the pieces of each run of held pages, and single blocks.
#include <algorithm>
#include <mutex>
#include <set>
#include <vector>

#include "heap_blocks.h"
#include "runtime.h"

namespace gpushare {

namespace {
uint64_t number(const void* address) { return reinterpret_cast<uint64_t>(address); }
}  // namespace

gs_use Heap::use_of(const void* address) const {
  auto it = counts_.used_elsewhere.find(const_cast<void*>(address));
  return it != counts_.used_elsewhere.end() && it->second.freed ? GS_USED_ELSEWHERE : GS_USED;
}

gs_piece Heap::piece(const char* address, uint64_t bytes, uint64_t asked) const {
  gs_use use = asked ? use_of(address) : GS_FREE;
  return {number(address), bytes, asked, 0, stream(), arena_, use};
}

void Heap::list_slab(const Slab* s, std::vector<gs_piece>& out) const {
  for (uint32_t i = 0; i < s->count; ++i)
    out.push_back(piece(s->base + uint64_t{i} * s->size, s->size, s->used[i] ? s->size : 0));
  uint64_t rest = s->block->granules * kGranule - uint64_t{s->count} * s->size;
  if (rest) out.push_back(piece(s->base + uint64_t{s->count} * s->size, rest, 0));
}

// Bytes `from` to `to` of a region: a run of its held pages. Only free blocks can reach beyond it.
void Heap::list_run(const Region* r, uint64_t from, uint64_t to, std::vector<gs_piece>& out) const {
  size_t begin = out.size();
  for (const Block* b = r->at[0]; b; b = b->after) {
    uint64_t first = b->first * kGranule, end = first + b->granules * kGranule;
    first = std::max(first, from), end = std::min(end, to);
    if (first >= end) continue;
    if (b->used && b->slab)
      list_slab(b->slab, out);
    else
      out.push_back(piece(r->base + first, end - first, b->used ? b->bytes : 0));
  }
  for (size_t i = begin; i < out.size(); ++i) out[i].segment = number(r->base + from);
}

void Heap::list(std::vector<gs_piece>& out) const {
  for (const Region* r : regions_)
    for (size_t p = 0; p < r->pages.size(); ++p) {
      if (!r->pages[p].held) continue;
      size_t first = p;
      while (p < r->pages.size() && r->pages[p].held) ++p;
      list_run(r, first * page_bytes_, p * page_bytes_, out);
    }
  for (auto [pages, first] : kept_extents_) {
    out.push_back(piece(governor_->pool().address(first), pages * page_bytes_, 0));
    out.back().segment = out.back().address;
  }
}

void Heap::list_extent(const Span* span, std::vector<gs_piece>& out) const {
  out.push_back(piece(governor_->pool().address(span->first), span->pages * page_bytes_,
                      std::min(span->bytes, span->pages * page_bytes_)));
  out.back().segment = out.back().address;
}

// Extents are found by their addresses. Whose one is can only be read while nobody frees it, so
// every account that has a heap stands still meanwhile; none gets its first one.
std::vector<gs_piece> Runtime::pieces(uint32_t account) {
  std::vector<gs_piece> out;
  std::lock_guard lock(heaps_mutex_);
  std::vector<std::unique_lock<std::mutex>> still;
  std::set<uint32_t> accounts;
  for (auto& [key, heap] : heaps_) accounts.insert(heap->account());
  for (auto& heap : ended_) accounts.insert(heap->account());
  for (uint32_t id : accounts) still.emplace_back(governor_.account(id).heaps);
  for (auto& [key, heap] : heaps_)
    if (heap->account() == account) heap->list(out);
  for (auto& heap : ended_)
    if (heap->account() == account) heap->list(out);
  const Span* last = nullptr;
  for (PageIndex p = 0; p < governor_.pool().pages(); ++p) {
    const Span* span = map_.find(p);
    if (!span || span == last || !span->bytes || span->heap->account() != account) continue;
    last = span;
    span->heap->list_extent(span, out);
  }
  std::ranges::sort(out, {}, &gs_piece::address);
  return out;
}

uint64_t Runtime::block_bytes(const void* address) {
  Span* span = map_.find(governor_.pool().index(address));
  return span ? span->heap->bytes_at(const_cast<void*>(address), span) : 0;
}

}  // namespace gpushare
