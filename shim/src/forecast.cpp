#include "forecast.h"

#include <algorithm>

namespace gpushare {

namespace {

// Going through an iteration's steps as time passes.
struct Cursor {
  const Forecast* forecast;
  uint32_t step;
  uint64_t begun_ns;  // the iteration's time at which the newcomer starts

  // When the next step begins, counted from the newcomer's start; never, behind the last.
  uint64_t next_ns() const {
    if (step >= forecast->length()) return UINT64_MAX;
    uint64_t at = forecast->time(step + 1);
    return at > begun_ns ? at - begun_ns : 0;
  }
};

constexpr uint32_t kLooksPerStep = 16;  // bounds the work for curves of a million points

}  // namespace

void Forecast::follow(const Curve& curve, bool same_bytes) {
  if (!same_bytes || !known()) cut(curve);
  uint64_t last = 0;  // averages of iterations with different lengths may go back
  for (Step& s : steps_) last = s.time_ns = std::max(last, curve.time(s.ordinal));
  duration_ns_ = std::max(curve.duration_ns(), last);
  residue_ = static_cast<uint32_t>(curve.residue());
}

// A step ends where what is held has moved away from its beginning: long flat stretches cost one
// step, steep ones stay sharp.
void Forecast::cut(const Curve& curve) {
  uint32_t n = curve.length(), stride = n / (kLooksPerStep * kSteps) + 1, peak = 0;
  for (uint32_t i = 0; i < n; ++i) peak = std::max(peak, curve.held(i));
  for (uint32_t tolerance = peak / (2 * kSteps);; tolerance += tolerance / 2 + 1) {
    steps_.clear();
    uint32_t first = 0;
    for (uint32_t i = 0; i < n; i += stride) {
      uint32_t held = curve.held(i);
      uint32_t moved = held > first ? held - first : first - held;
      if (!steps_.empty() && moved <= tolerance) continue;
      steps_.push_back({i, 0, 0});
      first = held;
    }
    if (steps_.size() <= kSteps) break;
  }
  for (size_t s = 0; s < steps_.size(); ++s) {
    uint32_t end = s + 1 < steps_.size() ? steps_[s + 1].ordinal : n;
    for (uint32_t i = steps_[s].ordinal; i < end; ++i)
      steps_[s].held = std::max(steps_[s].held, curve.held(i));
  }
}

uint32_t Forecast::step_at(uint32_t ordinal) const {
  auto after = std::ranges::upper_bound(steps_, ordinal, {}, &Step::ordinal);
  return after == steps_.begin() ? 0 : static_cast<uint32_t>(after - steps_.begin()) - 1;
}

uint32_t Forecast::claim(uint32_t step) const {
  uint32_t most = residue_;
  for (; step < length(); ++step) most = std::max(most, steps_[step].held);
  return most;
}

UnderWay under_way(const Forecast& forecast, const Curve& curve, uint32_t ordinal,
                   uint64_t since_ns) {
  uint32_t n = curve.length(), made = std::min(ordinal, n);
  uint64_t end = forecast.time(forecast.length());
  uint64_t next = made < n ? curve.time(made) : std::max<uint64_t>(end, 1) - 1;
  uint64_t last = made > 0 ? curve.time(made - 1) : 0;
  UnderWay now{&forecast, forecast.step_at(std::max(made, 1u) - 1), 0};
  return later(now, std::min(last + since_ns, std::max(last, next)));
}

UnderWay later(UnderWay now, uint64_t ahead_ns) {
  now.elapsed_ns += ahead_ns;
  while (now.step < now.forecast->length() && now.forecast->time(now.step + 1) <= now.elapsed_ns)
    ++now.step;
  return now;
}

bool fit_together(const Forecast& newcomer, std::span<const UnderWay> running, uint64_t room) {
  std::vector<Cursor> cursors{{&newcomer, 0, 0}};
  for (const UnderWay& u : running) cursors.push_back({u.forecast, u.step, u.elapsed_ns});
  uint64_t end = newcomer.time(newcomer.length()), sum = 0;
  for (const Cursor& c : cursors) sum += c.forecast->held(c.step);
  while (sum <= room) {
    uint64_t next = UINT64_MAX;
    for (const Cursor& c : cursors) next = std::min(next, c.next_ns());
    if (next >= end) return true;
    for (Cursor& c : cursors)
      while (c.next_ns() <= next) {
        sum -= c.forecast->held(c.step);
        sum += c.forecast->held(++c.step);
      }
  }
  return false;
}

}  // namespace gpushare
