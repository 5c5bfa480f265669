// The banker's check against a search of all that can happen, in every small state: it calls safe
// what can end, and nothing else.
#include "../src/safety.h"

#include <vector>

#include "check.h"
#include "reachability.h"

using gpushare::is_safe;
using gpushare::Open;

namespace {

uint64_t safe = 0, unsafe = 0;

// In each state, whoever of them has ended already, with each budget.
void compare(const std::vector<Demand>& demands) {
  uint64_t most = 0;
  for (const Demand& d : demands) most += d.claim;
  std::vector<Open> open;
  for (uint64_t budget = 0; budget <= most; ++budget) {
    Reachability search(demands, budget);
    for (uint32_t state = 0; state < search.states(); ++state) {
      uint64_t held = search.held(state);
      if (held > budget) continue;
      open.clear();
      for (uint32_t i = 0; i < demands.size(); ++i)
        if (!search.has_ended(state, i))
          open.push_back({search.progress(state, i), demands[i].claim, demands[i].residue});
      bool expected = search.all_can_end(state);
      CHECK(is_safe(open.data(), static_cast<uint32_t>(open.size()), budget - held) == expected);
      ++(expected ? safe : unsafe);
    }
  }
}

}  // namespace

int main() {
  for_all_demands(1, 12, compare);
  for_all_demands(2, 9, compare);
  for_all_demands(3, 5, compare);
  for_all_demands(4, 3, compare);
  for_all_demands(5, 2, compare);
  CHECK(safe > 1000000 && unsafe > 1000000);
  CHECK(is_safe(nullptr, 0, 0));
  printf("safety: %llu safe and %llu unsafe states agree\n", static_cast<unsigned long long>(safe),
         static_cast<unsigned long long>(unsafe));
}
