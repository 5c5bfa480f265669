// Which blocks of an iteration will still be there at its end. The heap keeps these off the pages
// of the others, which are to be empty again by then (placing.cpp).
#pragma once

#include <atomic>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace gpushare {

class Kinds {
 public:
  ~Kinds() { delete table_.load(); }
  struct Made {
    uint64_t bytes;
    bool persistent;
  };

  // An allocation before the first iteration: parameters, buffers, data.
  void note_set_up(uint64_t bytes);
  // What an iteration allocated, by ordinal. Once: readers of the table take no lock.
  void learn(std::vector<Made> made);
  bool learned() const { return table_.load(std::memory_order_relaxed) != nullptr; }
  // As at the same place in the iteration that was learned if the size is the same, else as most
  // of that size there. Before one was learned: a gradient, or a state of the optimizer, has the
  // size of a parameter.
  bool persistent(uint32_t ordinal, uint64_t bytes) const;

 private:
  struct Table {
    std::vector<Made> made;
    std::unordered_map<uint64_t, int64_t> by_size;  // persistent ones less the others
  };
  static constexpr uint32_t kSizes = 1024, kProbes = 8;  // what finds no slot is not remembered
  static uint32_t slot_of(uint64_t bytes, uint32_t probe) {
    return (static_cast<uint32_t>((bytes * 0x9E3779B97F4A7C15ull) >> 54) + probe) & (kSizes - 1);
  }

  std::atomic<uint64_t> set_up_[kSizes] = {};  // sizes seen
  std::atomic<const Table*> table_{nullptr};
};

}  // namespace gpushare
