// States of a pool that torch's graph trees go back to before they record behind a replayed graph.
// Follows getCheckpointState, setCheckpointPoolState and CheckpointDelta of
// c10/cuda/CUDACachingAllocator.h, and what torch/csrc/cuda/Module.cpp does with them: storages of
// live outputs get the deleters that come back, and a context that is the block itself.
#include <c10/util/Exception.h>

#include <memory>
#include <vector>

#include "allocator.h"

namespace gpushare::bridge {

namespace {

struct Checkpoint final : caching::AllocatorState {
  PoolId pool;
  std::vector<gs_arena_block> blocks;
};

std::vector<gs_arena_block> used_in(const Pools::Pool& pool) {
  std::vector<gs_arena_block> blocks;
  uint64_t count = gs_arena_blocks(pool.account, pool.arena, nullptr, 0);
  do {  // there may be more of them by now
    blocks.resize(count);
    count = gs_arena_blocks(pool.account, pool.arena, blocks.data(), blocks.size());
  } while (count > blocks.size());
  blocks.resize(count);
  return blocks;
}

void* address_of(const gs_arena_block& block) { return reinterpret_cast<void*>(block.address); }

}  // namespace

std::unordered_set<void*> blocks_of(const Pools::Pool& pool) {
  std::unordered_set<void*> found;
  for (const gs_arena_block& block : used_in(pool)) found.insert(address_of(block));
  return found;
}

std::shared_ptr<caching::AllocatorState> Allocator::getCheckpointState(c10::DeviceIndex,
                                                                       PoolId id) {
  auto pool = pools_.find(id);
  TORCH_CHECK(pool, "gpushare: there is no such memory pool, so it has no state to keep");
  auto state = std::make_shared<Checkpoint>();
  state->pool = id;
  state->blocks = used_in(*pool);
  return state;
}

caching::CheckpointDelta Allocator::setCheckpointPoolState(
    c10::DeviceIndex device, std::shared_ptr<caching::AllocatorState> state) {
  auto* checkpoint = dynamic_cast<Checkpoint*>(state.get());
  TORCH_CHECK(checkpoint, "gpushare: this is no state that its allocator has given");
  auto pool = pools_.find(checkpoint->pool);
  TORCH_CHECK(pool, "gpushare: the memory pool is gone, so it can't be set back");
  caching::CheckpointDelta delta;
  for (const gs_arena_block& block : used_in(*pool)) delta.ptrs_freed.push_back(address_of(block));
  const auto& blocks = checkpoint->blocks;
  int failed = gs_arena_restore(pool->account, pool->arena, blocks.data(), blocks.size());
  TORCH_CHECK(failed == 0, gs_last_error());
  for (const gs_arena_block& block : blocks) {
    void* address = address_of(block);
    delta.dataptrs_allocd.emplace_back(address, address, raw_deleter(),
                                       c10::Device(c10::DeviceType::CUDA, device));
  }
  return delta;
}

}  // namespace gpushare::bridge
