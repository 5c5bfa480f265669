// A job's iteration cut into segments, in each of which about as many pages are allocated or freed
// (Waterwave's node groups, section 4.3), and what each needs.
#pragma once

#include <cstdint>
#include <vector>

#include "curve.h"

namespace gpushare {

class Segments {
 public:
  static constexpr uint64_t kNone = 0, kByCurve = UINT64_MAX;
  static constexpr uint64_t kInARise = 16;  // by its curve: of what it holds beyond its residue

  // `split_pages` are allocated or freed in a segment.
  void cut(const Curve& curve, uint64_t split_pages);
  // Most pages the rest of the segment ever needed, allocation `ordinal` included.
  uint64_t need(uint32_t ordinal) const { return ordinal < need_.size() ? need_[ordinal] : 0; }

 private:
  std::vector<uint32_t> need_;
};

}  // namespace gpushare
