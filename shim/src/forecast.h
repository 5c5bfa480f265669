// What an iteration will probably hold, over the time since its start; and whether iterations that
// start at different times fit together. A forecast says what is worth starting (Zico, section 5,
// for any number of jobs); what is safe says safety.h.
#pragma once

#include <algorithm>
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
  // The most that is held from the step on, and what is held at the iteration's end.
  uint32_t claim(uint32_t step) const;
  uint32_t residue() const { return residue_; }

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

// The first moment behind `from` and before `to` at which `holds`, looked for at a few moments and
// then more closely; `to` if there is none.
template <class Holds>
uint64_t first_moment(uint64_t from, uint64_t to, Holds holds) {
  constexpr uint64_t kMomentsAhead = 32;                       // at the most
  constexpr uint64_t kFinestNs = 250000, kFinestShare = 1024;  // of the span: how exact it is
  uint64_t span = to - from, before = from, at = to;
  uint64_t moments = std::max<uint64_t>(1, std::min(kMomentsAhead, span / kFinestNs));
  for (uint64_t moment = 1; moment < moments && at == to; ++moment) {
    uint64_t ahead = from + span * moment / moments;
    (holds(ahead) ? at : before) = ahead;
  }
  while (at - before > std::max(kFinestNs, span / kFinestShare)) {
    uint64_t middle = before + (at - before) / 2;
    (holds(middle) ? at : before) = middle;
  }
  return at;
}

// Whether `newcomer`, started now, and those under way stay within `room` pages until it ends, if
// all go on at their pace. One that ends is left with its residue.
bool fit_together(const Forecast& newcomer, std::span<const UnderWay> running, uint64_t room);

}  // namespace gpushare
