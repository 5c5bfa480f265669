// The banker's check: after this step, can every open iteration still finish in some order?
//
// It knows no clock. Each open iteration holds `held`, will hold at most `claim` before it ends and
// keeps `residue` afterwards. Everything is in pages.
#pragma once

#include <cstdint>

namespace gpushare {

struct Open {
  uint64_t held, claim, residue;  // claim >= max(held, residue)
};

// `available`: pages of the budget that nobody holds. Reorders `open`.
bool is_safe(Open* open, uint32_t n, uint64_t available);

}  // namespace gpushare
