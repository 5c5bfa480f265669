// Captures of CUDA graphs and their memory pools.
#include <c10/cuda/CUDAStream.h>
#include <c10/util/Exception.h>

#include "allocator.h"

namespace gpushare::bridge {

namespace {

template <typename T>
concept TellsCaptures = requires(T& allocator) { allocator.markCaptureBegin(0); };

// Where torch does not tell: a filter that lets the current stream pass already routes a thread,
// and one that does not waits for its capture to begin.
template <typename T>
bool will_capture(c10::DeviceIndex device, const Filter& filter) {
  if constexpr (TellsCaptures<T>)
    return false;
  else
    return !filter(c10::cuda::getCurrentCUDAStream(device).stream());
}

}  // namespace

void Allocator::beginAllocateToPool(c10::DeviceIndex device, PoolId pool, Filter filter) {
  bool captures = will_capture<caching::CUDAAllocator>(device, filter);
  gs_capture_prepare(gs_thread_account());  // the capture itself begins after this
  pools_.begin(gs_thread_account(), pool, std::move(filter), captures);
}

void Allocator::endAllocateToPool(c10::DeviceIndex, PoolId pool) { pools_.end(pool); }

void Allocator::markCaptureBegin(c10::DeviceIndex) { gs_capture_begin(gs_thread_account()); }

void Allocator::markCaptureEnd(c10::DeviceIndex) { gs_capture_end(gs_thread_account()); }

void Allocator::releasePool(c10::DeviceIndex, PoolId pool) { pools_.remove_user(pool); }

void Allocator::createOrIncrefPool(c10::DeviceIndex, PoolId pool,
                                   std::shared_ptr<caching::CUDAAllocator> allocator) {
  TORCH_CHECK(!allocator,
              "gpushare: a torch.cuda.MemPool can't have an allocator of its own here, since its "
              "memory would lie outside the budget");
  pools_.add_user(gs_thread_account(), pool);
}

int Allocator::getPoolUseCount(c10::DeviceIndex, PoolId pool) {
  auto found = pools_.find(pool);
  return found ? found->users : 0;
}

bool Allocator::checkPoolLiveAllocations(c10::DeviceIndex, PoolId pool,
                                         const std::unordered_set<void*>& expected) {
  auto found = pools_.find(pool);
  return blocks_of(found ? *found : Pools::Pool{}) == expected;
}

}  // namespace gpushare::bridge
