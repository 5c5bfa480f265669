// Answers to what scripts ask of memory, for the calling thread's account. Follows
// c10/core/CachingDeviceAllocator.h (DeviceStats, SegmentInfo, BlockInfo).
//
// There is one pool, so torch's division into small and large blocks is answered as large. Segments
// are pages. What is not followed over time has its present value as its peak.
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/util/Exception.h>

#include <algorithm>

#include "allocator.h"

namespace gpushare::bridge {

namespace {

using c10::CachingAllocator::Stat;
using c10::CachingAllocator::StatArray;
using c10::CachingAllocator::StatType;
using c10::CachingDeviceAllocator::BlockInfo;
using c10::CachingDeviceAllocator::SegmentInfo;

void set(StatArray& array, uint64_t current, uint64_t peak, uint64_t allocated, uint64_t freed) {
  Stat stat;
  stat.current = static_cast<int64_t>(current);
  stat.peak = static_cast<int64_t>(peak);
  stat.allocated = static_cast<int64_t>(allocated);
  stat.freed = static_cast<int64_t>(freed);
  array[static_cast<size_t>(StatType::AGGREGATE)] = stat;
  array[static_cast<size_t>(StatType::LARGE_POOL)] = stat;
}

std::vector<gs_piece> pieces_of(gs_account account) {
  std::vector<gs_piece> pieces;
  uint64_t count = gs_pieces(account, nullptr, 0);
  do {  // there may be more of them by now
    pieces.resize(count);
    count = gs_pieces(account, pieces.data(), pieces.size());
  } while (count > pieces.size());
  pieces.resize(count);
  return pieces;
}

BlockInfo block(const gs_piece& p) {
  BlockInfo info;
  info.size = p.bytes;
  info.requested_size = p.asked;
  info.allocated = p.use == GS_USED;
  info.active = p.use != GS_FREE;
  return info;
}

SegmentInfo segment(const gs_piece& p, c10::DeviceIndex device, PoolId owner) {
  SegmentInfo info;
  info.device = device;
  info.address = p.segment;
  info.stream = reinterpret_cast<void*>(p.stream);
  info.is_large = true;
  info.owner_private_pool_id = owner;
  return info;
}

void add(SegmentInfo& s, const gs_piece& p) {
  s.total_size += p.bytes;
  s.requested_size += p.asked;
  if (p.use == GS_USED) s.allocated_size += p.bytes;
  if (p.use != GS_FREE) s.active_size += p.bytes;
  s.blocks.push_back(block(p));
}

}  // namespace

gs_memory memory() {
  gs_memory m{};
  TORCH_CHECK(gs_memory_get(gs_thread_account(), &m) == 0, gs_last_error());
  return m;
}

size_t free_bytes(const gs_memory& m) {
  uint64_t taken = m.held_bytes + m.shared_bytes;
  return m.limit_bytes - std::min(m.limit_bytes, taken);
}

c10::CachingDeviceAllocator::DeviceStats device_stats() {
  gs_memory m = memory();
  c10::CachingDeviceAllocator::DeviceStats s;
  uint64_t page = m.page_bytes;
  set(s.allocation, m.blocks, m.blocks_peak, m.allocations, m.frees);
  s.active = s.allocation;
  set(s.allocated_bytes, m.live_bytes, m.live_peak_bytes, m.allocated_bytes, m.freed_bytes);
  s.active_bytes = s.requested_bytes = s.allocated_bytes;
  set(s.reserved_bytes, m.held_bytes, m.held_peak_bytes, m.charged_bytes, m.returned_bytes);
  set(s.segment, m.held_bytes / page, m.held_peak_bytes / page, m.charged_bytes / page,
      m.returned_bytes / page);
  uint64_t between = m.held_bytes - std::min(m.held_bytes, m.live_bytes);
  set(s.inactive_split_bytes, between, between, 0, 0);
  s.num_ooms = static_cast<int64_t>(m.refusals);
  s.num_device_alloc = static_cast<int64_t>(m.charged_bytes / page);
  s.num_device_free = static_cast<int64_t>(m.returned_bytes / page);
  return s;
}

caching::SnapshotInfo snapshot_of(Pools& pools, c10::DeviceIndex device, PoolId only) {
  caching::SnapshotInfo out{};
  out.device_traces.resize(static_cast<size_t>(device) + 1);
  for (const gs_piece& p : pieces_of(gs_thread_account())) {
    PoolId owner = p.arena ? pools.id_of(p.arena) : PoolId{0, 0};
    if (only != PoolId{0, 0} && owner != only) continue;
    if (out.segments.empty() || out.segments.back().address != p.segment)
      out.segments.push_back(segment(p, device, owner));
    add(out.segments.back(), p);
  }
  return out;
}

void Allocator::cacheInfo(c10::DeviceIndex, size_t* largest) { *largest = free_bytes(memory()); }

std::pair<size_t, size_t> Allocator::getMemoryInfo(c10::DeviceIndex) {
  gs_memory m = memory();
  return {free_bytes(m), m.budget_bytes};
}

double Allocator::getMemoryFraction(c10::DeviceIndex) { return fraction_[gs_thread_account()]; }

void Allocator::setMemoryFraction(double fraction, c10::DeviceIndex) {
  TORCH_CHECK_VALUE(fraction >= 0.0 && fraction <= 1.0,
                    "the memory fraction must be between 0 and 1, but got ", fraction);
  gs_account account = gs_thread_account();
  fraction_[account] = fraction;
  auto bytes = static_cast<uint64_t>(fraction * static_cast<double>(memory().budget_bytes));
  TORCH_CHECK(gs_limit_set(account, fraction < 1.0 ? bytes : UINT64_MAX) == 0, gs_last_error());
}

c10::CachingDeviceAllocator::DeviceStats Allocator::getDeviceStats(c10::DeviceIndex) {
  return device_stats();
}

void Allocator::resetAccumulatedStats(c10::DeviceIndex) {
  gs_memory_reset_totals(gs_thread_account());
}

void Allocator::resetPeakStats(c10::DeviceIndex) { gs_memory_reset_peaks(gs_thread_account()); }

caching::SnapshotInfo Allocator::snapshot(PoolId pool, bool) {
  return snapshot_of(pools_, static_cast<c10::DeviceIndex>(gs_device()), pool);
}

// Nothing here is torch's kind of expandable segment.
std::vector<caching::StreamSegmentSize> Allocator::getExpandableSegmentSizes(c10::DeviceIndex) {
  return {};
}

void Allocator::attachOutOfMemoryObserver(caching::OutOfMemoryObserver observer) {
  std::lock_guard lock(observers_mutex_);
  observers_.emplace_back(gs_thread_account(), std::move(observer));
}

// Those that the job itself has attached, with no lock in hand: they may call Python.
void Allocator::tell_observers(int device, size_t bytes) {
  std::vector<caching::OutOfMemoryObserver> own;
  {
    std::lock_guard lock(observers_mutex_);
    for (const auto& [account, observer] : observers_)
      if (account == gs_thread_account()) own.push_back(observer);
  }
  if (own.empty()) return;
  gs_memory m = memory();
  for (const auto& observer : own) observer(device, bytes, m.budget_bytes, free_bytes(m));
}

}  // namespace gpushare::bridge
