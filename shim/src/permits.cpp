#include "permits.h"

namespace gpushare {

std::vector<PairPermit> pair_permits(std::span<const gs_permit> permits,
                                     const std::function<bool(gs_account)>& known) {
  std::vector<PairPermit> found;
  for (const gs_permit& p : permits)
    if (known(p.job) && known(p.after))
      found.push_back({static_cast<uint32_t>(p.job),
                       static_cast<uint32_t>(p.after),
                       {true, p.made, p.shift_ns, p.by_forecast != 0}});
  return found;
}

}  // namespace gpushare
