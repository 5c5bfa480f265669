// Frees that fit no block, told with what is known of the address: `gpushare run --debug-memory`.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <mutex>
#include <unordered_map>

namespace gpushare {

enum class BadFreeKind : int32_t {
  kTwice = 1,  // a block began there and was freed before
  kInside,     // in the middle of a block that lives
  kNoBlock     // no block is there, and none of the latest that were freed
};

struct BadFree {
  uint64_t address, bytes;  // of the block
  uint64_t offset;          // of the address in it
  uint64_t iteration;       // of `freed_by`, when it freed the block before
  BadFreeKind kind;
  uint32_t freer, owner, freed_by;  // accounts
};

class BadFrees {
 public:
  static constexpr size_t kRemembered = 1 << 16, kUnread = 1024;

  // Remembers what is freed from now on.
  void start() { on_ = true; }
  bool on() const { return on_.load(std::memory_order_relaxed); }
  void freed(const void* address, uint64_t bytes, uint32_t owner, uint32_t freer,
             uint64_t iteration);
  // No block begins at the address. `inside` says in which one it lies, if its bytes are not 0.
  void report(const void* address, uint32_t freer, BadFree inside);
  // The next one that was not read; false if there is none. The latest kUnread are kept.
  bool next(BadFree* out);

 private:
  struct Freed {
    uint64_t bytes, iteration, serial;
    uint32_t owner, freer;
  };
  std::atomic<bool> on_{false};
  std::mutex mutex_;
  std::unordered_map<const void*, Freed> freed_;
  std::deque<std::pair<const void*, uint64_t>> order_;  // with the serial
  uint64_t serial_ = 0;
  std::deque<BadFree> unread_;
};

}  // namespace gpushare
