// The memory of a CUDA graph set back to what it was after a capture. Torch's graph trees record
// one graph behind another that was replayed: a replay makes its blocks anew without a call, so the
// heap has to be told of them before a capture may use what is free. Follows getCheckpointState and
// setCheckpointPoolState of c10/cuda/CUDACachingAllocator.h.
//
// An arena gives no page back, its regions and extents stay what they are, and so every address of
// an earlier state is there.
#include <algorithm>
#include <stdexcept>
#include <vector>

#include "heap_blocks.h"
#include "runtime.h"

namespace gpushare {

namespace {
uint64_t number(const void* address) { return reinterpret_cast<uint64_t>(address); }
void* at(uint64_t address) { return reinterpret_cast<void*>(address); }
}  // namespace

void Heap::list_used(std::vector<gs_arena_block>& out) const {
  for (const Region* r : regions_)
    for (const Block* b = r->at[0]; b; b = b->after) {
      if (!b->used) continue;
      uint64_t address = number(r->base + b->first * kGranule);
      if (const Slab* s = b->slab) {
        for (uint32_t i = 0; i < s->count; ++i)
          if (s->used[i])
            out.push_back({address + uint64_t{i} * s->size, s->size, address, own_, true});
      } else {
        out.push_back({address, b->bytes, 0, own_, b->persistent});
      }
    }
  for (auto [first, span] : extents_)
    out.push_back({number(governor_->pool().address(first)), span->bytes, 0, own_, true});
  // What was freed, and only waits for other streams, is not in use.
  std::erase_if(out, [&](const gs_arena_block& b) { return use_of(at(b.address)) != GS_USED; });
}

void Heap::release_used() {
  std::vector<gs_arena_block> used;
  list_used(used);
  for (const gs_arena_block& b : used) {
    void* address = at(b.address);
    Span* span = map_->find(governor_->pool().index(address));
    count_free(b.bytes, block_at(address, span).lies);
    release_at_once(address, span);
  }
  drop_empty();  // slabs: others may come to lie there
}

// With the lock in hand: the pages stay the arena's.
uint64_t Heap::keep_extent(Span* span, bool count) {
  uint64_t bytes = span->bytes;
  map_->set(span->first, span->pages, nullptr);
  extents_.erase(span->first);
  kept_extents_.emplace(span->pages, span->first);
  delete span;
  if (count) count_free(bytes, kInExtent);
  return bytes;
}

void Heap::retake(const gs_arena_block& block) {
  Span* span = map_->find(governor_->pool().index(at(block.address)));
  if (!span) return retake_extent(block);
  Region* r = span->region;
  if (!r || span->heap != this)
    throw std::logic_error("other memory lies where a block of the arena was");
  if (block.slab) return retake_small(r, block);
  take_at(r, block.address - number(r->base), block, nullptr);
}

void Heap::retake_extent(const gs_arena_block& block) {
  PageIndex first = governor_->pool().index(at(block.address));
  for (auto it = kept_extents_.begin(); it != kept_extents_.end(); ++it) {
    if (it->second != first || it->first * page_bytes_ < block.bytes) continue;
    auto* span = new Span{this, first, static_cast<uint32_t>(it->first), block.bytes, nullptr};
    kept_extents_.erase(it);
    map_->set(first, span->pages, span);
    extents_[first] = span;
    count_allocation(block.bytes, kInExtent);
    return;
  }
  throw std::logic_error("a large block of the arena is not there any more");
}

// With the heaps' lock in hand.
std::vector<Heap*> Runtime::heaps_of(uint32_t account, uint32_t arena) {
  std::vector<Heap*> found;
  for (auto it = heaps_.lower_bound({account, arena, 0}); it != heaps_.end(); ++it) {
    auto [id, a, stream] = it->first;
    if (id != account || a != arena) break;
    found.push_back(it->second.get());
  }
  return found;
}

std::vector<gs_arena_block> Runtime::arena_blocks(uint32_t account, uint32_t arena) {
  std::vector<gs_arena_block> found;
  std::lock_guard all(heaps_mutex_);
  std::lock_guard lock(governor_.account(account).heaps);
  for (const Heap* heap : heaps_of(account, arena)) heap->list_used(found);
  return found;
}

namespace {
// With the lock of the account's heaps in hand.
bool none_used_elsewhere(const Account& a, const std::vector<Heap*>& heaps) {
  return std::ranges::none_of(a.used_elsewhere, [&](const auto& entry) {
    return std::ranges::count(heaps, entry.second.span->heap) > 0;
  });
}

Heap* heap_of(const std::vector<Heap*>& heaps, const gs_arena_block& block) {
  for (Heap* heap : heaps)
    if (heap->serves(block.stream)) return heap;
  throw DeviceFailure("gpushare: the memory pool of this CUDA graph is gone");
}
}  // namespace

// Blocks that other streams use too are freed as a script would; whether there are any.
bool Runtime::free_used_elsewhere(Account& a, const std::vector<Heap*>& heaps) {
  std::lock_guard lock(a.heaps);
  if (none_used_elsewhere(a, heaps)) return false;
  if (a.captures.load(std::memory_order_relaxed))
    throw DeviceFailure(
        "gpushare: blocks of a CUDA graph that other streams use can't be set back while the job "
        "captures another graph");
  for (auto& [address, use] : a.used_elsewhere)
    if (std::ranges::count(heaps, use.span->heap)) use.span->heap->defer(address, use);
  return true;
}

void Runtime::restore_arena(uint32_t account, uint32_t arena,
                            const std::vector<gs_arena_block>& blocks) {
  Account& a = governor_.account(account);
  std::unique_lock all(heaps_mutex_);
  std::vector<Heap*> heaps = heaps_of(account, arena);
  for (const gs_arena_block& block : blocks) heap_of(heaps, block);
  if (free_used_elsewhere(a, heaps)) {
    all.unlock();  // other jobs may want it while the device is waited for
    finish_in_arenas(governor_, a);
    reclaim(governor_, a, false);
    all.lock();
    heaps = heaps_of(account, arena);
    for (const gs_arena_block& block : blocks) heap_of(heaps, block);
  }
  std::vector<gs_arena_block> before;
  std::lock_guard lock(a.heaps);
  if (!none_used_elsewhere(a, heaps))
    throw DeviceFailure("gpushare: a block of a CUDA graph came into use elsewhere meanwhile");
  for (Heap* heap : heaps) heap->list_used(before), heap->release_used();
  for (const gs_arena_block& block : blocks) heap_of(heaps, block)->retake(block);
  note_restored(a, before, blocks);
}

// For the logs: all of the first were freed, and all of the second were made.
void Runtime::note_restored(Account& a, const std::vector<gs_arena_block>& freed,
                            const std::vector<gs_arena_block>& made) {
  bool traced = a.tracing.load(std::memory_order_relaxed);
  for (const gs_arena_block& b : freed) {
    if (traced) a.trace.freed(at(b.address), b.bytes, Fences::kGone);
    if (governor_.log().on()) log(Logged::kFreed, a.id, Fences::kGone, at(b.address), 0);
  }
  for (const gs_arena_block& b : made) {
    if (traced) a.trace.allocated(at(b.address), b.bytes, b.stream);
    if (governor_.log().on()) log(Logged::kAllocated, a.id, b.stream, at(b.address), b.bytes);
  }
}

}  // namespace gpushare
