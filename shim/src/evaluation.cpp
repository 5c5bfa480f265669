#include "evaluation.h"

#include <algorithm>

namespace gpushare {

namespace {

constexpr uint64_t kLeastPreludes = 3;
constexpr uint64_t kForgets = 8;   // a prelude is forgotten by this part an iteration
constexpr uint64_t kPatience = 4;  // times the last batch's allocations
constexpr int64_t kLowPart = 8;
// What comes before so many graphs in a row, in so few batches, belongs to them.
constexpr uint64_t kRow = 3, kFewBatches = 8;

}  // namespace

void Evaluation::begin(bool may_end) {
  std::lock_guard lock(mutex_);
  may_end_ = may_end;
  if (ended_) {
    ended_ = false;
    return;
  }
  if (batches_ == 0) in_a_row_ = 0;
  before_ = batches_ = 0;
  low_ = INT64_MAX;
  high_ = INT64_MIN;
  is_low_ = true;
  known_from_ = 2 * prelude_ + kFew;
  lost_from_ = (1 + kPatience) * known_from_;
}

void Evaluation::note_graph(uint32_t allocations) {
  std::lock_guard lock(mutex_);
  if (!may_end_) return;  // what it did could have been an evaluation as well
  if (batches_ > 0) ++in_a_row_;
  bool evaluated = batches_ > 0 && (in_a_row_ < kRow || batches_ > kFewBatches);
  if (!evaluated) note_prelude(before_ + allocations);
}

// Of the first few the least: one of them may have had an evaluation before it.
void Evaluation::note_prelude(uint64_t allocations) {
  bool first = preludes_++ < kLeastPreludes;
  if (first && preludes_ > 1)
    prelude_ = std::min(prelude_, allocations);
  else
    prelude_ = std::max(prelude_ - prelude_ / kForgets, allocations);
}

bool Evaluation::batch_ended(uint32_t ordinal, int64_t live, bool keeps_little) {
  std::lock_guard lock(mutex_);
  if (!may_end_ || ended_ || preludes_ < kLeastPreludes) return false;
  uint64_t at = before_ + ordinal;
  bool fell = falls(live), lost = at >= lost_from_;
  if (at < known_from_ || (!fell && !lost)) return false;
  bool still = low_ == high_;  // then any place will do
  if (lost && !fell && !still) {
    learn_from(at, live);
    return false;
  }
  if (!keeps_little) return false;
  ended_ = true;
  ++batches_;
  before_ = at;
  low_ = live;
  known_from_ = at + kFew;
  lost_from_ = known_from_ + kPatience * (still ? kFew : std::max<uint64_t>(kFew, ordinal));
  return true;
}

void Evaluation::take_back() {
  std::lock_guard lock(mutex_);
  ended_ = false;
}

bool Evaluation::close() {
  std::lock_guard lock(mutex_);
  return ended_;
}

void Evaluation::learn_from(uint64_t at, int64_t live) {
  uint64_t span = lost_from_ - known_from_;
  known_from_ = at + span;
  lost_from_ = known_from_ + kPatience * span;
  low_ = high_ = live;
  is_low_ = true;
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
