#include "evaluation.h"

#include <algorithm>

namespace gpushare {

namespace {

constexpr uint64_t kLeastGraphs = 2;  // the first one begins with a node, and tells nothing
constexpr uint64_t kPatience = 4;     // times the last batch's allocations
constexpr int64_t kLowPart = 8;

}  // namespace

void Evaluation::begin(bool may_end) {
  std::lock_guard lock(mutex_);
  may_end_ = may_end && graphs_ >= kLeastGraphs;
  if (ended_) {
    ended_ = false;
    return;
  }
  evaluated_ = evaluates_;
  evaluates_ = false;
  before_ = 0;
  low_ = INT64_MAX;
  high_ = INT64_MIN;
  is_low_ = true;
  known_from_ = 2 * prelude_ + kFew;
  lost_from_ = (1 + kPatience) * known_from_;
}

// What comes before every graph belongs to it, whatever it looks like.
void Evaluation::note_graph(uint32_t allocations) {
  std::lock_guard lock(mutex_);
  ++graphs_;
  if (!evaluates_ || evaluated_) prelude_ = std::max(prelude_, before_ + allocations);
}

bool Evaluation::batch_ended(uint32_t ordinal, int64_t live) {
  std::lock_guard lock(mutex_);
  if (!may_end_ || ended_) return false;
  uint64_t at = before_ + ordinal;
  bool fell = falls(live), lost = at >= lost_from_;
  if (at < known_from_ || (!fell && !lost)) return false;
  bool still = low_ == high_;  // then any place will do
  if (lost && !fell && !still) {
    uint64_t span = lost_from_ - known_from_;
    known_from_ = at + span;
    lost_from_ = known_from_ + kPatience * span;
    low_ = high_ = live;
    is_low_ = true;
    return false;
  }
  ended_ = evaluates_ = true;
  before_ = at;
  low_ = live;
  known_from_ = at + kFew;
  lost_from_ = known_from_ + kPatience * (still ? kFew : std::max<uint64_t>(kFew, ordinal));
  return true;
}

bool Evaluation::close() {
  std::lock_guard lock(mutex_);
  return ended_;
}

// Whether memory comes down here from the upper half of what it moves in.
bool Evaluation::falls(int64_t live) {
  low_ = std::min(low_, live);
  high_ = std::max(high_, live);
  if (live > low_ + (high_ - low_) / 2) is_low_ = false;
  if (live > low_ + (high_ - low_) / kLowPart) return false;
  bool fell = !is_low_;
  is_low_ = true;
  return fell;
}

}  // namespace gpushare
