// Which accesses of the same bytes must follow each other, whatever the streams: so that a test can
// compare the waits that an allocator makes with those that its reuse of memory really needs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

namespace gpushare::fake_cuda {

class Hazards {
 public:
  using Places = std::vector<std::pair<uint64_t, size_t>>;  // offset in the device's memory, bytes

  // When the earlier accesses end that this one must follow.
  uint64_t ready(const Places& places, bool writes) const;
  void accessed(const Places& places, bool writes, uint64_t end);

 private:
  static constexpr uint64_t kCell = 64;  // blocks of an allocator do not share one
  struct Ends {
    uint64_t write = 0, any = 0;
  };
  std::unordered_map<uint64_t, Ends> cells_;
};

}  // namespace gpushare::fake_cuda
