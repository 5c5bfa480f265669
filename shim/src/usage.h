// What an account has used so far, as its script may ask: peaks and sums that the script resets
// when it likes. The peaks that schedule the job are others (governor.h), since no script may touch
// them.
#pragma once

#include <algorithm>
#include <cstdint>

namespace gpushare {

// Of blocks; guarded by the account's heaps' mutex.
struct BlockUsage {
  int64_t live_peak = 0;                        // bytes
  uint64_t peak = 0;                            // blocks at once
  uint64_t bytes = 0;                           // of all that were ever allocated
  uint64_t bytes_before = 0, freed_before = 0;  // bytes until the sums were reset
  uint64_t allocations_before = 0, frees_before = 0;

  void allocated(uint64_t n, int64_t live, uint64_t blocks) {
    bytes += n;
    live_peak = std::max(live_peak, live);
    peak = std::max(peak, blocks);
  }
};

// Of pages; guarded by the governor's mutex.
struct PageUsage {
  uint64_t held_peak = 0;
  uint64_t sum = 0;                              // of all that were ever charged
  uint64_t sum_before = 0, returned_before = 0;  // until the sums were reset
  uint64_t refusals_before = 0;

  void charged(uint64_t n, uint64_t held) {
    sum += n;
    held_peak = std::max(held_peak, held);
  }
};

}  // namespace gpushare
