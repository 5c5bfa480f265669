// The banker's check against trying every order, on all small states of three iterations.
#include "../src/safety.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "check.h"

using gpushare::is_safe;
using gpushare::Open;

static bool some_order_works(const std::vector<Open>& open, uint64_t available) {
  std::vector<size_t> order(open.size());
  std::iota(order.begin(), order.end(), 0);
  do {
    uint64_t free = available;
    bool works = true;
    for (size_t i : order) {
      const Open& o = open[i];
      if (o.claim - o.held > free || o.residue > free + o.held) {
        works = false;
        break;
      }
      free = free + o.held - o.residue;
    }
    if (works) return true;
  } while (std::next_permutation(order.begin(), order.end()));
  return false;
}

int main() {
  std::vector<Open> states;
  for (uint64_t claim = 0; claim <= 4; ++claim)
    for (uint64_t held = 0; held <= claim; ++held)
      for (uint64_t residue = 0; residue <= claim; ++residue)
        states.push_back({held, claim, residue});
  uint64_t safe = 0, unsafe = 0;
  for (const Open& a : states)
    for (const Open& b : states)
      for (const Open& c : states)
        for (uint64_t available = 0; available <= 4; ++available) {
          std::vector<Open> open = {a, b, c};
          bool expected = some_order_works(open, available);
          CHECK(is_safe(open.data(), 3, available) == expected);
          (expected ? safe : unsafe)++;
        }
  CHECK(safe > 10000 && unsafe > 10000);
  CHECK(is_safe(nullptr, 0, 0));
  printf("safety: %llu safe and %llu unsafe states agree\n", static_cast<unsigned long long>(safe),
         static_cast<unsigned long long>(unsafe));
}
