// A script's questions about its memory. Lock order: heaps, governor.
#include "usage.h"

#include <algorithm>

#include "governor.h"

namespace gpushare {

namespace {
uint64_t live_bytes(const Account& a) {
  return static_cast<uint64_t>(std::max<int64_t>(a.live.load(std::memory_order_relaxed), 0));
}

void tell_blocks(const Account& a, gs_memory& out) {
  uint64_t live = live_bytes(a), made = a.allocations, gone = a.frees;
  out.live_bytes = live;
  out.live_peak_bytes = static_cast<uint64_t>(a.blocks.live_peak);
  out.allocated_bytes = a.blocks.bytes - a.blocks.bytes_before;
  out.freed_bytes = a.blocks.bytes - live - a.blocks.freed_before;
  out.blocks = made - gone;
  out.blocks_peak = a.blocks.peak;
  out.allocations = made - a.blocks.allocations_before;
  out.frees = gone - a.blocks.frees_before;
}
}  // namespace

gs_memory Governor::memory(uint32_t id) {
  gs_memory out{};
  Account& a = accounts_[id];
  std::lock_guard blocks(a.heaps);
  tell_blocks(a, out);
  Lock lock(mutex_);
  uint64_t page = pool_.page_bytes(), held = a.held.load(std::memory_order_relaxed);
  out.budget_bytes = budget_ * page;
  out.page_bytes = page;
  out.limit_bytes = std::min(a.limit, budget_) * page;
  out.pool_held_bytes = held_ * page;
  out.shared_bytes = accounts_[GS_SHARED].held.load(std::memory_order_relaxed) * page;
  out.held_bytes = held * page;
  out.held_peak_bytes = a.pages.held_peak * page;
  out.charged_bytes = (a.pages.sum - a.pages.sum_before) * page;
  out.returned_bytes = (a.pages.sum - held - a.pages.returned_before) * page;
  out.refusals = telemetry_->slot(id, kOomCount) - a.pages.refusals_before;
  out.copied_out_bytes = a.saved * page;
  return out;
}

void Governor::reset_memory_peaks(uint32_t id) {
  Account& a = accounts_[id];
  std::lock_guard blocks(a.heaps);
  a.blocks.live_peak = a.live.load(std::memory_order_relaxed);
  a.blocks.peak = a.allocations - a.frees;
  Lock lock(mutex_);
  a.pages.held_peak = a.held.load(std::memory_order_relaxed);
}

void Governor::reset_memory_totals(uint32_t id) {
  Account& a = accounts_[id];
  std::lock_guard blocks(a.heaps);
  a.blocks.bytes_before = a.blocks.bytes;
  a.blocks.freed_before = a.blocks.bytes - live_bytes(a);
  a.blocks.allocations_before = a.allocations;
  a.blocks.frees_before = a.frees;
  Lock lock(mutex_);
  a.pages.sum_before = a.pages.sum;
  a.pages.returned_before = a.pages.sum - a.held.load(std::memory_order_relaxed);
  a.pages.refusals_before = telemetry_->slot(id, kOomCount);
}

void Governor::set_limit(uint32_t id, uint64_t pages) {
  Lock lock(mutex_);
  accounts_[id].limit = pages;
  pump();  // whoever waits for more than that is told
}

}  // namespace gpushare
