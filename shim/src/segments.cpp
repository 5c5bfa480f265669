#include "segments.h"

#include <algorithm>

namespace gpushare {

namespace {

uint64_t split_of(const Curve& curve) {
  uint64_t most = std::max(curve.claim(0), curve.residue());
  return std::max<uint64_t>(1, (most - curve.residue()) / Segments::kInARise);
}

}  // namespace

void Segments::cut(const Curve& curve, uint64_t split_pages) {
  need_.clear();
  if (split_pages == kNone || !curve.known()) return;
  uint64_t split = split_pages == kByCurve ? split_of(curve) : split_pages, moved = 0;
  need_.resize(curve.length());
  uint32_t first = 0, most = 0;
  auto end_at = [&](uint32_t end) {
    most = 0;
    for (uint32_t i = end; i-- > first;) need_[i] = most = std::max(most, curve.held(i));
    first = end;
    moved = 0;
  };
  for (uint32_t i = 1; i < curve.length(); ++i) {
    moved += apart(curve.held(i), curve.held(i - 1));
    if (moved >= split) end_at(i);
  }
  end_at(curve.length());
}

}  // namespace gpushare
