// The physical pages that exist: at which address each was last held and by whom, and which are
// idle, in the order in which they were freed. No locks: part of the pool.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "device.h"
#include "fences.h"

namespace gpushare {

using PageIndex = uint32_t;
constexpr PageIndex kNoPage = UINT32_MAX;
constexpr uint8_t kNobody = 255;  // no account has this number

struct LastUse {
  uint8_t account = kNobody;
  Stream stream = 0;
  Batch batch = 0;  // in which the frame was freed; 0: nothing of the use is left
};

class Frames {
 public:
  uint64_t count() const { return count_; }
  size_t numbers() const { return frames_.size(); }  // a frame's is less
  uint64_t idle_count() const { return idle_count_; }
  Frame add();           // not idle; its number may be that of one that was removed
  void remove(Frame f);  // an idle one
  bool idle(Frame f) const { return frames_[f].idle; }
  PageIndex page(Frame f) const { return frames_[f].page; }
  void set_page(Frame f, PageIndex page) { frames_[f].page = page; }
  // Whoever gets the frame waits for it. While a frame is held it is still of who held it before.
  LastUse& last(Frame f) { return frames_[f].last; }
  const LastUse& last(Frame f) const { return frames_[f].last; }
  // What the stream has used is nobody's own any more.
  void forget_stream(Stream stream);
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
    LastUse last;
  };
  std::vector<Entry> frames_;
  std::vector<Frame> unused_;  // numbers
  uint64_t count_ = 0, idle_count_ = 0;
  Frame oldest_ = kNoFrame, newest_ = kNoFrame;
};

}  // namespace gpushare
