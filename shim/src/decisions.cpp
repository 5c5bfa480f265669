#include "decisions.h"

#include <algorithm>

namespace gpushare {

void WaitReasons::end(uint64_t now_ns) {
  ns_[shut_.why] += now_ns - since_ns_;
  by_[shut_.why] = shut_.by;
  since_ns_ = now_ns;
}

Shut WaitReasons::longest() const {
  auto most = std::ranges::max_element(ns_);
  auto why = static_cast<Why>(most - ns_.begin());
  return {why, by_[why]};
}

}  // namespace gpushare
