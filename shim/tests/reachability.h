// What is safe, told by search: no order of ends is looked for, and nothing is known of one.
//
// Iterations take their pages one at a time, interleaved in any way, while all together hold no
// more than the budget. None gives anything back before it has taken its whole claim, which is the
// worst that may happen; then it may end, and keeps its residue. A state is safe if from there the
// state can be reached in which all have ended.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

struct Demand {
  uint32_t claim, residue;  // pages; claim >= residue
};

class Reachability {
 public:
  // Breadth first, from where all have ended back along each step that may have led there.
  Reachability(std::vector<Demand> demands, uint64_t budget) : demands_(std::move(demands)) {
    uint32_t states = 1;
    for (const Demand& d : demands_) strides_.push_back(states), states *= d.claim + 2;
    can_end_.assign(states, false);
    std::vector<uint32_t> found;
    auto reach = [&](uint32_t state) {
      if (can_end_[state] || held(state) > budget) return;
      can_end_[state] = true;
      found.push_back(state);
    };
    reach(states - 1);
    for (size_t next = 0; next < found.size(); ++next)
      for (uint32_t i = 0; i < demands_.size(); ++i)
        if (progress(found[next], i) > 0) reach(found[next] - strides_[i]);
  }

  uint32_t states() const { return static_cast<uint32_t>(can_end_.size()); }
  // In this state: pages that an iteration has taken so far, or one more than its claim if it has
  // ended.
  uint32_t progress(uint32_t state, uint32_t i) const {
    return state / strides_[i] % (demands_[i].claim + 2);
  }
  bool has_ended(uint32_t state, uint32_t i) const {
    return progress(state, i) > demands_[i].claim;
  }
  uint64_t held(uint32_t state) const {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < demands_.size(); ++i)
      sum += has_ended(state, i) ? demands_[i].residue : progress(state, i);
    return sum;
  }
  bool all_can_end(uint32_t state) const { return can_end_[state]; }
  // Of open iterations that hold so much each.
  bool all_can_end(const std::vector<uint64_t>& held) const {
    uint64_t state = 0;
    for (uint32_t i = 0; i < demands_.size(); ++i) {
      if (held[i] > demands_[i].claim) return false;
      state += held[i] * strides_[i];
    }
    return can_end_[state];
  }

 private:
  std::vector<Demand> demands_;
  std::vector<uint32_t> strides_;  // a state's number is that of its progresses, in mixed radix
  std::vector<bool> can_end_;
};

// Calls `with` for each list of `count` demands, of claims up to `most_claim`.
template <class With>
void for_all_demands(uint32_t count, uint32_t most_claim, const With& with,
                     std::vector<Demand> demands = {}) {
  if (demands.size() == count) return with(demands);
  for (uint32_t claim = 0; claim <= most_claim; ++claim)
    for (uint32_t residue = 0; residue <= claim; ++residue) {
      demands.push_back({claim, residue});
      for_all_demands(count, most_claim, with, demands);
      demands.pop_back();
    }
}
