#include "frames.h"

namespace gpushare {

Frame Frames::add() {
  ++count_;
  if (unused_.empty()) {
    frames_.emplace_back();
    return static_cast<Frame>(frames_.size() - 1);
  }
  Frame f = unused_.back();
  unused_.pop_back();
  frames_[f] = {};
  return f;
}

void Frames::remove(Frame f) {
  take(f);
  frames_[f].page = kNoPage;
  unused_.push_back(f);
  --count_;
}

void Frames::take(Frame f) {
  Entry& e = frames_[f];
  (e.previous == kNoFrame ? oldest_ : frames_[e.previous].next) = e.next;
  (e.next == kNoFrame ? newest_ : frames_[e.next].previous) = e.previous;
  e.idle = false;
  --idle_count_;
}

void Frames::release(Frame f) {
  Entry& e = frames_[f];
  e.idle = true;
  e.next = kNoFrame;
  e.previous = newest_;
  (newest_ == kNoFrame ? oldest_ : frames_[newest_].next) = f;
  newest_ = f;
  ++idle_count_;
}

void Frames::forget_stream(Stream stream) {
  for (Entry& e : frames_)
    if (e.last.stream == stream) e.last.stream = Fences::kGone;
}

}  // namespace gpushare
