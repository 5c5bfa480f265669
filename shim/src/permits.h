// Permits as the C API has them.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "../include/gpushare.h"
#include "account.h"

namespace gpushare {

// As the governor takes them; those of accounts that are not known are left out.
std::vector<PairPermit> pair_permits(std::span<const gs_permit> permits,
                                     const std::function<bool(gs_account)>& known);

}  // namespace gpushare
