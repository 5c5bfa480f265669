// Torch's CUDA allocator over the shim's C API. Follows torch/csrc/cuda/CUDAPluggableAllocator.h
// and c10/cuda/CUDACachingAllocator.h of torch 2.11 to 2.13.
//
// The base class keeps a map of all blocks under one lock and throws at most questions. Everything
// is overridden that would take that lock, or that a script can reach: answered for the job of the
// calling thread, as if the budget were the card, or refused in words. What later versions add is
// refused by the base class, since it calls nothing of ours.
#pragma once

#include <torch/csrc/cuda/CUDAPluggableAllocator.h>

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "pools.h"

namespace gpushare::bridge {

namespace caching = c10::cuda::CUDACachingAllocator;

// Answers to questions about memory, of the calling thread's account; see statistics.cpp.
gs_memory memory();
// Bytes that the account could still get if it were alone.
size_t free_bytes(const gs_memory& m);
c10::CachingDeviceAllocator::DeviceStats device_stats();
caching::SnapshotInfo snapshot_of(Pools& pools, c10::DeviceIndex device, PoolId only);
// Start addresses of the blocks of an arena that are in use.
std::unordered_set<void*> blocks_of(const Pools::Pool& pool);

class Allocator final : public torch::cuda::CUDAPluggableAllocator::CUDAPluggableAllocator {
 public:
  using Base = torch::cuda::CUDAPluggableAllocator::CUDAPluggableAllocator;
  using Base::recordStream;

  // `name`: that of the allocator in whose place it stands. Torch compares it with the one that its
  // settings name (CUDAAllocatorConfig.cpp, parseAllocatorConfig), which it reads later.
  explicit Allocator(std::string name);

  // Memory. Throw c10::OutOfMemoryError with the shim's figures, or c10::Error.
  c10::DataPtr allocate(size_t bytes) override;
  void* raw_alloc(size_t bytes) override;
  void* raw_alloc_with_stream(size_t bytes, cudaStream_t stream) override;
  void raw_delete(void* address) override;
  c10::DeleterFnPtr raw_deleter() const override;
  void recordStream(const c10::DataPtr& block, c10::cuda::CUDAStream stream) override;
  void* getBaseAllocation(void* address, size_t* bytes) override;
  void emptyCache(PoolId pool = {0, 0}) override;

  // Questions.
  void cacheInfo(c10::DeviceIndex device, size_t* largest) override;
  std::pair<size_t, size_t> getMemoryInfo(c10::DeviceIndex device) override;
  double getMemoryFraction(c10::DeviceIndex device) override;
  void setMemoryFraction(double fraction, c10::DeviceIndex device) override;
  c10::CachingDeviceAllocator::DeviceStats getDeviceStats(c10::DeviceIndex device) override;
  void resetAccumulatedStats(c10::DeviceIndex device) override;
  void resetPeakStats(c10::DeviceIndex device) override;
  caching::SnapshotInfo snapshot(PoolId pool, bool include_traces = true) override;
  std::vector<caching::StreamSegmentSize> getExpandableSegmentSizes(
      c10::DeviceIndex device) override;
  bool isHistoryEnabled() override { return false; }
  void attachOutOfMemoryObserver(caching::OutOfMemoryObserver observer) override;
  std::string name() override { return name_; }

  // Pools of graphs.
  void beginAllocateToPool(c10::DeviceIndex device, PoolId pool, Filter filter) override;
  void endAllocateToPool(c10::DeviceIndex device, PoolId pool) override;
  void releasePool(c10::DeviceIndex device, PoolId pool) override;
  void createOrIncrefPool(c10::DeviceIndex device, PoolId pool,
                          std::shared_ptr<caching::CUDAAllocator> allocator = nullptr) override;
  int getPoolUseCount(c10::DeviceIndex device, PoolId pool) override;
  bool checkPoolLiveAllocations(c10::DeviceIndex device, PoolId pool,
                                const std::unordered_set<void*>& expected) override;
  // Torch 2.13 calls these when a capture really begins and ends; 2.11 does not know them, so they
  // can't be marked as overriding.
  virtual void markCaptureBegin(c10::DeviceIndex device);
  virtual void markCaptureEnd(c10::DeviceIndex device);

  // Where the begin or the end of a capture has failed: torch 2.11 tells of a capture before the
  // driver begins it, and asks the driver for its end before it tells of that.
  int captures(gs_account account) { return pools_.captures(account); }
  void abandon_captures(gs_account account, int keep) { pools_.abandon_captures(account, keep); }

  // States of a pool, for graphs that are recorded behind others; see checkpoints.cpp.
  std::shared_ptr<caching::AllocatorState> getCheckpointState(c10::DeviceIndex device,
                                                              PoolId pool) override;
  caching::CheckpointDelta setCheckpointPoolState(
      c10::DeviceIndex device, std::shared_ptr<caching::AllocatorState> state) override;

  // Refused: what this allocator can't do yet, or not at all.
  void setUseOnOOM(c10::DeviceIndex device, PoolId pool, bool use) override;
  void setNoSplit(c10::DeviceIndex device, PoolId pool) override;
  caching::ShareableHandle shareIpcHandle(void* address) override;
  std::shared_ptr<void> getIpcDevPtr(std::string handle) override;
  void recordHistory(bool enabled, caching::CreateContextFn recorder, size_t entries,
                     caching::RecordContext when, bool clear,
                     const std::vector<std::string>& skipped) override;
  void attachAllocatorTraceTracker(caching::AllocatorTraceTracker tracker) override;
  void enablePeerAccess(c10::DeviceIndex device, c10::DeviceIndex other) override;

 private:
  void* obtain(size_t bytes, int device, cudaStream_t stream);
  [[noreturn]] void fail(size_t bytes, int device);
  void tell_observers(int device, size_t bytes);

  const std::string name_;
  Pools pools_;
  std::array<std::atomic<double>, GS_MAX_ACCOUNTS> fraction_;
  std::mutex observers_mutex_;
  std::vector<std::pair<gs_account, caching::OutOfMemoryObserver>> observers_;
};

}  // namespace gpushare::bridge
