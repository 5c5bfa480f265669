// Every allocation and free of a run, in order, written to a file for replay. The layout of a
// record is the same as in gpushare/telemetry/allocation_log.py.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

namespace gpushare {

enum class Logged : uint16_t { kAllocated = 1, kFreed, kIterationOpened, kIterationClosed };

class AllocationLog {
 public:
  // Writes to the descriptor from now on.
  void start(int fd);
  bool on() const { return on_.load(std::memory_order_relaxed); }
  // A block is logged after it was taken and before it is given back, so that an address never
  // has two owners in the log. `bytes` as asked; 0 where they mean nothing.
  void add(Logged what, uint32_t account, uint64_t stream, uint64_t iteration, const void* address,
           uint64_t bytes);
  void flush();
  // errno of the write that ended the log; 0 while all is well.
  int error() const { return error_.load(std::memory_order_relaxed); }

 private:
  struct Record {
    uint64_t time_ns, address, bytes, stream;
    uint32_t iteration;
    uint16_t account;
    Logged what;
  };
  static_assert(sizeof(Record) == 40);
  static constexpr size_t kBuffered = 4096;
  void write_out();

  std::mutex mutex_;
  std::vector<Record> records_;
  int fd_ = -1;
  std::atomic<bool> on_{false};
  std::atomic<int> error_{0};
};

}  // namespace gpushare
