// The allocations and frees of one iteration, to tell what its peak is made of, and what remains.
#pragma once

#include <cstdint>
#include <mutex>
#include <utility>
#include <vector>

#include "allocation_log.h"
#include "kinds.h"

namespace gpushare {

struct PeakKinds {
  uint64_t persistent = 0, activation = 0, temporary = 0;  // live bytes
};

class Trace {
 public:
  void start(uint64_t live_bytes);
  void allocated(const void* address, uint64_t bytes, uint64_t stream);
  void freed(const void* address, uint64_t bytes, uint64_t stream);
  // Persistent: alive before the iteration or after it. Temporary: gone within kTemporarySpan
  // events of its allocation. Activation: the rest.
  PeakKinds finish();
  // After finish(): each allocation in order, and whether it was alive at the end.
  std::vector<Kinds::Made> take_made() { return std::move(made_); }
  // After finish(): the iteration as a log. Bytes of small blocks are those of their size class.
  std::vector<LogRecord> take_log(uint32_t account, uint64_t iteration);

 private:
  static constexpr uint32_t kTemporarySpan = 8;
  // An iteration may never end, where a script goes on without a step; 40 bytes each.
  static constexpr size_t kMost = size_t{1} << 21;
  struct Event {
    const void* address;
    int64_t bytes;  // negative: freed
    uint64_t time_ns, stream;
    Kind kind = Kind::kUnknown;  // of an allocation
  };
  std::mutex mutex_;
  std::vector<Event> events_;
  std::vector<Kinds::Made> made_;
  uint64_t live_at_start_ = 0, started_ns_ = 0;
};

}  // namespace gpushare
