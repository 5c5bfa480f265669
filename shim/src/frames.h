// The physical pages that exist: at which address each was last held, and which are idle, in the
// order in which they were freed. No locks: part of the pool.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "device.h"

namespace gpushare {

using PageIndex = uint32_t;
constexpr PageIndex kNoPage = UINT32_MAX;

class Frames {
 public:
  uint64_t count() const { return count_; }
  uint64_t idle_count() const { return idle_count_; }
  Frame add();           // not idle; its number may be that of one that was removed
  void remove(Frame f);  // an idle one
  bool idle(Frame f) const { return frames_[f].idle; }
  PageIndex page(Frame f) const { return frames_[f].page; }
  void set_page(Frame f, PageIndex page) { frames_[f].page = page; }
  void take(Frame f);     // out of the idle ones
  void release(Frame f);  // the latest of the idle ones
  // For one who looks at several frames: whether this is the first time that `look` meets it. Each
  // look has another number.
  bool first_met(Frame f, uint64_t look) { return std::exchange(frames_[f].look, look) != look; }
  Frame oldest() const { return oldest_; }
  Frame next(Frame f) const { return frames_[f].next; }  // freed after it

 private:
  struct Entry {
    PageIndex page = kNoPage;
    bool idle = false;
    uint64_t look = 0;
    Frame next = kNoFrame, previous = kNoFrame;
  };
  std::vector<Entry> frames_;
  std::vector<Frame> unused_;  // numbers
  uint64_t count_ = 0, idle_count_ = 0;
  Frame oldest_ = kNoFrame, newest_ = kNoFrame;
};

}  // namespace gpushare
