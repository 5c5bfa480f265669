#include "safety.h"

#include <algorithm>

namespace gpushare {

// Order that succeeds if any does: those that give memory back, smallest need first; then those
// that keep more than they have now, largest claim above residue first (the same argument,
// backwards).
static bool finishes_before(const Open& a, const Open& b) {
  bool a_gives = a.held >= a.residue, b_gives = b.held >= b.residue;
  if (a_gives != b_gives) return a_gives;
  if (a_gives) return a.claim - a.held < b.claim - b.held;
  return a.claim - a.residue > b.claim - b.residue;
}

bool is_safe(Open* open, uint32_t n, uint64_t available) {
  std::sort(open, open + n, finishes_before);
  for (uint32_t i = 0; i < n; ++i) {
    if (open[i].claim - open[i].held > available) return false;
    available = available + open[i].held - open[i].residue;  // the claim covers the residue
  }
  return true;
}

}  // namespace gpushare
