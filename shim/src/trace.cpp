#include "trace.h"

#include <unordered_map>

namespace gpushare {

void Trace::start(uint64_t live_bytes) {
  std::lock_guard lock(mutex_);
  events_.clear();
  live_at_start_ = live_bytes;
}

void Trace::allocated(const void* address, uint64_t bytes) {
  std::lock_guard lock(mutex_);
  events_.push_back({address, static_cast<int64_t>(bytes)});
}

void Trace::freed(const void* address, uint64_t bytes) {
  std::lock_guard lock(mutex_);
  events_.push_back({address, -static_cast<int64_t>(bytes)});
}

PeakKinds Trace::finish() {
  std::lock_guard lock(mutex_);
  int64_t live = static_cast<int64_t>(live_at_start_), most = live;
  size_t peak = 0;  // events before the peak
  for (size_t i = 0; i < events_.size(); ++i)
    if ((live += events_[i].bytes) > most) most = live, peak = i + 1;

  PeakKinds kinds;
  std::unordered_map<const void*, size_t> born;  // allocated in this iteration, alive
  std::vector<size_t> place(events_.size());     // of an allocation, among the allocations
  made_.clear();
  int64_t older = static_cast<int64_t>(live_at_start_);
  for (size_t i = 0; i < events_.size(); ++i) {
    const Event& e = events_[i];
    if (e.bytes > 0) {
      born[e.address] = i;
      place[i] = made_.size();
      made_.push_back({static_cast<uint64_t>(e.bytes), true});
      continue;
    }
    auto it = born.find(e.address);
    if (it == born.end()) {
      if (i < peak) older += e.bytes;
      continue;
    }
    bool at_peak = it->second < peak && i >= peak;
    uint64_t bytes = static_cast<uint64_t>(-e.bytes);
    if (at_peak) (i - it->second <= kTemporarySpan ? kinds.temporary : kinds.activation) += bytes;
    made_[place[it->second]].persistent = false;
    born.erase(it);
  }
  for (auto [address, i] : born)
    if (i < peak) kinds.persistent += static_cast<uint64_t>(events_[i].bytes);
  kinds.persistent += static_cast<uint64_t>(older > 0 ? older : 0);
  events_.clear();
  return kinds;
}

}  // namespace gpushare
