#include "hazards.h"

#include <algorithm>

namespace gpushare::fake_cuda {

uint64_t Hazards::ready(const Places& places, bool writes) const {
  uint64_t end = 0;
  for (auto [offset, bytes] : places)
    for (uint64_t cell = offset / kCell; cell * kCell < offset + bytes; ++cell) {
      auto found = cells_.find(cell);
      if (found == cells_.end()) continue;
      end = std::max(end, writes ? found->second.any : found->second.write);
    }
  return end;
}

void Hazards::accessed(const Places& places, bool writes, uint64_t end) {
  for (auto [offset, bytes] : places)
    for (uint64_t cell = offset / kCell; cell * kCell < offset + bytes; ++cell) {
      Ends& ends = cells_[cell];
      ends.any = std::max(ends.any, end);
      if (writes) ends.write = std::max(ends.write, end);
    }
}

}  // namespace gpushare::fake_cuda
