#include "kinds.h"

#include <utility>

namespace gpushare {

void Kinds::note_set_up(uint64_t bytes) {
  for (uint32_t probe = 0; probe < kProbes; ++probe) {
    std::atomic<uint64_t>& slot = set_up_[slot_of(bytes, probe)];
    uint64_t found = slot.load(std::memory_order_relaxed);
    if (found == bytes) return;
    if (found == 0 && slot.compare_exchange_strong(found, bytes, std::memory_order_relaxed)) return;
    if (found == bytes) return;
  }
}

void Kinds::learn(std::vector<Made> made) {
  if (learned()) return;
  auto* table = new Table{std::move(made), {}};
  for (const Made& m : table->made) table->by_size[m.bytes] += m.persistent ? 1 : -1;
  table_.store(table, std::memory_order_release);
}

bool Kinds::persistent(uint32_t ordinal, uint64_t bytes) const {
  if (const Table* table = table_.load(std::memory_order_acquire)) {
    if (ordinal < table->made.size() && table->made[ordinal].bytes == bytes)
      return table->made[ordinal].persistent;
    auto found = table->by_size.find(bytes);
    return found != table->by_size.end() && found->second > 0;
  }
  for (uint32_t probe = 0; probe < kProbes; ++probe)
    if (set_up_[slot_of(bytes, probe)].load(std::memory_order_relaxed) == bytes) return true;
  return false;
}

}  // namespace gpushare
