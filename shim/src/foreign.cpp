// What a heap leaves to the device: pages that are made ready once its lock is dropped, and freed
// blocks that other streams may still use.
#include <utility>

#include "heap_blocks.h"

namespace gpushare {

void Heap::settle() {
  std::lock_guard turn(settling_);
  DeviceWork work;
  {
    std::lock_guard lock(mutex_);
    work = std::exchange(pending_, {});
  }
  if (work.empty()) return;  // whoever had the turn has done it
  try {
    governor_->perform(work, stream());
  } catch (...) {
    // Others may have blocks on these pages. They try again, or give them up with the last block.
    std::lock_guard lock(mutex_);
    pending_.merge(std::move(work));
    throw;
  }
  std::lock_guard lock(mutex_);
  if (pending_.empty()) unsettled_.store(false, std::memory_order_release);
}

// Only after a failure is anything pending for pages that no block lies on.
void Heap::give_up_pending(PageIndex first, uint64_t n) {
  if (pending_.mappings.empty()) return;
  DeviceWork gone;
  std::erase_if(pending_.mappings, [&](const DeviceWork::Mapping& m) {
    bool of_these = m.page >= first && m.page < first + n;
    if (of_these) gone.mappings.push_back(m);
    return of_these;
  });
  if (gone.mappings.empty()) return;
  gone.before_unmapping = pending_.before_unmapping;
  gone.waits = pending_.waits;
  governor_->give_up(gone);
}

// With the lock in hand. Bytes of the block that starts at the address; 0: none.
uint64_t Heap::bytes_at(void* address, Span* span) const {
  if (span->bytes) return address == governor_->pool().address(span->first) ? span->bytes : 0;
  uint64_t offset = static_cast<uint64_t>(static_cast<char*>(address) - span->region->base);
  const Block* b = span->region->at[offset / kGranule];
  if (!b || !b->used) return 0;
  offset -= b->first * kGranule;
  if (!b->slab) return offset == 0 ? b->bytes : 0;
  uint64_t i = offset / b->slab->size;
  return offset % b->slab->size == 0 && i < b->slab->count && b->slab->used[i] ? b->slab->size : 0;
}

bool Heap::note_use(void* address, Span* span) {
  std::lock_guard lock(mutex_);
  if (!bytes_at(address, span)) return false;
  if (used_elsewhere_.try_emplace(address, Foreign{span, 0}).second)
    foreign_.fetch_add(1, std::memory_order_relaxed);
  return true;
}

uint64_t Heap::release_or_defer(void* address, Span* span) {
  {
    std::lock_guard lock(mutex_);
    auto it = used_elsewhere_.find(address);
    if (it != used_elsewhere_.end()) {
      uint64_t bytes = it->second.freed ? 0 : bytes_at(address, span);  // 0: freed twice
      if (bytes == 0) return 0;
      it->second.freed = governor_->fences().open(account_);
      governor_->fences().count(account_, bytes);
      foreign_freed_.fetch_add(1, std::memory_order_relaxed);
      count_free(bytes);
      return bytes;
    }
  }
  return release_now(address, span, true);
}

void Heap::end_stream() {
  governor_->forget_stream(account_, stream());
  stream_.store(Fences::kGone, std::memory_order_relaxed);
}

// Makes blocks free that were freed while other streams used them: those whose uses have ended; or
// all of them, after this stream was made to wait for the uses. False if there was none.
bool Heap::reclaim(bool wait) {
  if (foreign_freed_.load(std::memory_order_relaxed) == 0) return false;
  Fences& fences = governor_->fences();
  fences.poll(account_);
  Batch until = wait ? fences.open(account_) : 0;
  // On a stream that is gone nothing is used again, and who gets the pages waits by itself.
  if (wait && stream() != Fences::kGone) fences.wait(stream(), account_, until);
  std::vector<std::pair<void*, Span*>> ended;
  {
    std::lock_guard lock(mutex_);
    std::erase_if(used_elsewhere_, [&](const auto& entry) {
      const Foreign& f = entry.second;
      if (!f.freed || !(f.freed <= until || fences.passed(account_, f.freed))) return false;
      ended.emplace_back(entry.first, f.span);
      return true;
    });
    foreign_.fetch_sub(static_cast<uint32_t>(ended.size()), std::memory_order_relaxed);
    foreign_freed_.fetch_sub(static_cast<uint32_t>(ended.size()), std::memory_order_relaxed);
  }
  for (auto [address, span] : ended) release_now(address, span, false);
  return !ended.empty();
}

}  // namespace gpushare
