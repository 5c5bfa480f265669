#include "decisions.h"

#include <algorithm>

namespace gpushare {

void WaitReasons::end(uint64_t now_ns) {
  uint64_t took = now_ns - since_ns_;
  ns_[shut_.why] += took;
  if (By& by = by_[shut_.why]; shut_.by && took >= by.ns) by = {shut_.by, took};
  since_ns_ = now_ns;
}

Shut WaitReasons::longest() const {
  auto most = std::ranges::max_element(ns_);
  auto why = static_cast<Why>(most - ns_.begin());
  return {why, by_[why].account};
}

}  // namespace gpushare
