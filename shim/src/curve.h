// What an iteration holds, by the ordinal of its allocations: recording one, and what is known of
// the next from those before.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <utility>
#include <vector>

namespace gpushare {

// Pages, whichever is more.
inline uint32_t apart(uint32_t a, uint32_t b) { return a > b ? a - b : b - a; }

// Records one iteration. note() runs on every allocation of the job, from any of its threads.
class Recorder {
 public:
  // Allocations of one iteration that are recorded, the last of them with the most of all later.
  static constexpr uint32_t kCapacity = 1u << 20;
  static constexpr uint32_t kAllTimed = 8192;  // beyond these, every 64th allocation is timed
  static constexpr uint32_t kFirst = 24;       // allocations that tell kinds of iterations apart

  ~Recorder();
  bool reserve();
  void restart(uint64_t start_ns) {
    start_ns_.store(start_ns, std::memory_order_relaxed);
    if (ordinal() >= kCapacity) held_[kCapacity - 1].store(0, std::memory_order_relaxed);
    next_.store(0, std::memory_order_relaxed);
    signature_.store(0, std::memory_order_relaxed);
  }
  // Waiting is not part of the curve's time.
  void skip(uint64_t waited_ns) { start_ns_.fetch_add(waited_ns, std::memory_order_relaxed); }
  uint32_t ordinal() const { return next_.load(std::memory_order_relaxed); }
  // `bytes` as asked for.
  void note(uint64_t held_pages, uint64_t bytes);
  // Whether the first allocations were made, and what tells them from others.
  bool begun() const { return ordinal() >= kFirst; }
  uint64_t signature() const { return signature_.load(std::memory_order_relaxed); }
  uint32_t length() const { return ordinal() < kCapacity ? ordinal() : kCapacity; }
  // How long ago the last allocation was, or the start.
  uint64_t since(uint64_t now_ns) const {
    uint64_t last = start_ns_.load(std::memory_order_relaxed);
    if (uint32_t n = length()) last += time(n - 1);
    return now_ns > last ? now_ns - last : 0;
  }
  uint32_t held(uint32_t i) const { return held_[i].load(std::memory_order_relaxed); }
  // Time of allocation i since the start, of the last one that was timed at or before it.
  uint64_t time(uint32_t i) const {
    return time_[i < kAllTimed ? i : i & ~63u].load(std::memory_order_relaxed);
  }

 private:
  void note_beyond(uint32_t held_pages);

  std::atomic<uint32_t> next_{0};
  std::atomic<uint64_t> start_ns_{0}, signature_{0};
  std::atomic<uint32_t>* held_ = nullptr;  // mapped once
  std::atomic<uint64_t>* time_ = nullptr;
};

class Curve {
 public:
  bool known() const { return !held_.empty(); }
  uint32_t length() const { return static_cast<uint32_t>(held_.size()); }
  uint32_t held(uint32_t i) const { return held_[i]; }
  uint64_t time(uint32_t i) const { return time_[i]; }
  uint64_t duration_ns() const { return duration_ns_; }
  uint64_t residue() const { return residue_; }
  // Most pages the rest of an iteration ever needed, its allocation `ordinal` included.
  uint64_t claim(uint32_t ordinal) const {
    if (claim_.size() == Recorder::kCapacity) ordinal = std::min(ordinal, Recorder::kCapacity - 1);
    return ordinal < claim_.size() ? claim_[ordinal] : residue_;
  }
  void set(std::vector<uint32_t> held, std::vector<uint64_t> time_ns, uint64_t residue_pages,
           uint64_t duration_ns);
  // It is from a saved profile, cut into steps that begin at these allocations, each with the most
  // held in it. The times of the first iteration that is like it replace those given.
  void came_in_steps(std::vector<uint32_t> begins) {
    steps_ = std::move(begins);
    times_given_ = true;
  }
  const std::vector<uint32_t>& steps() const { return steps_; }  // empty: it was recorded
  // Maximum of bytes. True if the claim rose.
  bool cover(const Recorder& r);
  // Moving average of times besides, where the iteration is as long as the curve, or known to be
  // `of_this_sort`. A duration of 0: its times say nothing.
  bool refine(const Recorder& r, uint64_t residue_pages, uint64_t duration_ns,
              bool of_this_sort = false);

 private:
  void rebuild_claim();
  std::vector<uint32_t> held_, claim_, steps_;
  std::vector<uint64_t> time_;
  uint64_t residue_ = 0, duration_ns_ = 0;
  bool times_given_ = false;
};

}  // namespace gpushare
