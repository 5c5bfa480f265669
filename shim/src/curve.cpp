#include "curve.h"

#include <sys/mman.h>

#include <algorithm>
#include <utility>

#include "clock.h"

namespace gpushare {

static void* map_lazily(size_t bytes) {
  void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return p == MAP_FAILED ? nullptr : p;
}

Recorder::~Recorder() {
  if (time_) munmap(time_, kCapacity * sizeof *time_);
  if (held_) munmap(held_, kCapacity * sizeof *held_);
}

bool Recorder::reserve() {
  if (held_) return true;
  time_ = static_cast<std::atomic<uint64_t>*>(map_lazily(kCapacity * sizeof *time_));
  held_ = static_cast<std::atomic<uint32_t>*>(map_lazily(kCapacity * sizeof *held_));
  return held_ && time_;
}

void Recorder::note(uint64_t held_pages, uint64_t bytes) {
  uint32_t i = next_.fetch_add(1, std::memory_order_relaxed);
  // A sum, so that it does not matter which of two threads adds first.
  if (i < kFirst)
    signature_.fetch_add((bytes + 1) * (2 * i + 1) * 0x9E3779B97F4A7C15, std::memory_order_relaxed);
  if (i >= kCapacity - 1) return note_beyond(static_cast<uint32_t>(held_pages));
  held_[i].store(static_cast<uint32_t>(held_pages), std::memory_order_relaxed);
  if (i >= kAllTimed && i % 64) return;
  uint64_t start = start_ns_.load(std::memory_order_relaxed), now = now_ns();
  time_[i].store(now - std::min(now, start), std::memory_order_relaxed);
}

// The last point stands for all that come after it.
void Recorder::note_beyond(uint32_t held_pages) {
  std::atomic<uint32_t>& last = held_[kCapacity - 1];
  uint32_t most = last.load(std::memory_order_relaxed);
  while (most < held_pages &&
         !last.compare_exchange_weak(most, held_pages, std::memory_order_relaxed)) {
  }
}

void Curve::set(std::vector<uint32_t> held, std::vector<uint64_t> time_ns, uint64_t residue_pages,
                uint64_t duration_ns) {
  held_ = std::move(held);
  time_ = std::move(time_ns);
  residue_ = residue_pages;
  duration_ns_ = duration_ns;
  rebuild_claim();
}

bool Curve::cover(const Recorder& r) {
  uint32_t n = r.length(), old = length();
  bool rose = n > old;
  if (rose) {
    held_.resize(n, 0);
    time_.resize(n, 0);
    for (uint32_t i = old; i < n; ++i) time_[i] = r.time(i);
  }
  for (uint32_t i = 0; i < n; ++i) {
    if (r.held(i) <= held_[i]) continue;
    held_[i] = r.held(i);
    rose = true;
  }
  if (rose) rebuild_claim();
  return rose;
}

bool Curve::refine(const Recorder& r, uint64_t residue_pages, uint64_t duration_ns,
                   bool of_this_sort) {
  uint64_t n = r.length(), old = length();
  bool rose = residue_pages > residue_ || !known();
  // An iteration of another sort has other times; its bytes count all the same.
  bool alike = known() && duration_ns && (of_this_sort || (n * 10 >= old * 9 && n * 9 <= old * 10));
  uint64_t weight = times_given_ ? 0 : 3;  // of what was known, to one of this iteration
  residue_ = std::max(residue_, residue_pages);
  bool covers = cover(r);
  if (rose && !covers) rebuild_claim();
  for (uint32_t i = 0; alike && i < std::min(n, old); ++i)
    time_[i] = (weight * time_[i] + r.time(i)) / (weight + 1);
  if (old == 0)
    duration_ns_ = duration_ns;
  else if (alike)
    duration_ns_ = (weight * duration_ns_ + duration_ns) / (weight + 1);
  if (alike) times_given_ = false;
  return rose || covers;
}

void Curve::rebuild_claim() {
  claim_.assign(held_.begin(), held_.end());
  uint32_t most = static_cast<uint32_t>(residue_);
  for (size_t i = claim_.size(); i-- > 0;) claim_[i] = most = std::max(most, claim_[i]);
}

}  // namespace gpushare
