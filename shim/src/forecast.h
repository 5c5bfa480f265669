// What an iteration will probably hold, over the time since its start; and whether iterations that
// start at different times fit together. A forecast says what is worth starting (Zico, section 5,
// for any number of jobs); what is safe says safety.h.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "curve.h"

namespace gpushare {

// A curve in a few steps, each with the most that it holds there. Pages and nanoseconds.
class Forecast {
 public:
  static constexpr uint32_t kSteps = 128;
  struct Step {
    uint32_t ordinal, held;
    uint64_t time_ns;
  };

  bool known() const { return !steps_.empty(); }
  // From the whole curve, or, if its bytes are the same as last time, its times alone.
  void follow(const Curve& curve, bool same_bytes);
  uint32_t length() const { return static_cast<uint32_t>(steps_.size()); }
  uint32_t held(uint32_t step) const { return step < length() ? steps_[step].held : residue_; }
  uint32_t ordinal(uint32_t step) const { return steps_[step].ordinal; }
  // The step's beginning; of the one behind the last, the iteration's end.
  uint64_t time(uint32_t step) const {
    return step < length() ? steps_[step].time_ns : duration_ns_;
  }
  uint32_t step_at(uint32_t ordinal) const;

 private:
  void cut(const Curve& curve);
  std::vector<Step> steps_;
  uint64_t duration_ns_ = 0;
  uint32_t residue_ = 0;
};

// An iteration that has come to this step, so long after its start.
struct UnderWay {
  const Forecast* forecast;
  uint32_t step;
  uint64_t elapsed_ns;
};
// One of this curve that has made `ordinal` allocations, the last one so long ago. Time goes on by
// the clock until the next allocation, and stands still if that is late.
UnderWay under_way(const Forecast& forecast, const Curve& curve, uint32_t ordinal,
                   uint64_t since_ns);
// The same, so much later.
UnderWay later(UnderWay now, uint64_t ahead_ns);

// Whether `newcomer`, started now, and those under way stay within `room` pages until it ends, if
// all go on at their pace. One that ends is left with its residue.
bool fit_together(const Forecast& newcomer, std::span<const UnderWay> running, uint64_t room);

}  // namespace gpushare
