// What a heap leaves to the device: pages that are made ready once its lock is dropped, and freed
// blocks that other streams may still use.
#include <algorithm>
#include <exception>
#include <optional>
#include <utility>

#include "gil.h"
#include "heap_blocks.h"

namespace gpushare {

void Heap::settle(std::unique_lock<std::mutex>& turn) {
  if (!turn.owns_lock()) turn.lock();
  DeviceWork work;
  {
    std::lock_guard lock(mutex_);
    work = std::exchange(pending_, {});
    // Whoever had the turn has done it, or all that it was for was given up.
    if (work.empty()) unsettled_.store(false, std::memory_order_release);
  }
  if (work.empty()) return;
  try {
    governor_->perform(work, account_, stream());
  } catch (...) {
    // Others may have blocks on these pages. They try again, or give them up with the last block.
    std::lock_guard lock(mutex_);
    pending_.merge(std::move(work));
    throw;
  }
  std::lock_guard lock(mutex_);
  if (pending_.empty()) unsettled_.store(false, std::memory_order_release);
}

// Whether the block, or the slab that it is part of, lies on a page that is not ready: so nothing
// of a slab is handed out, nor given back, while somebody else is at work on one of its pages.
bool Heap::is_pending(const Allocation& made) {
  std::lock_guard lock(mutex_);
  auto [first, last] = pages_under(made);
  auto lies_on = [&](PageIndex page) { return page >= first && page <= last; };
  return std::ranges::any_of(pending_.mappings, lies_on, &DeviceWork::Mapping::page) ||
         std::ranges::any_of(pending_.unready, lies_on);
}

// First and last page of an extent, or of the block in a region. With the lock in hand.
std::pair<PageIndex, PageIndex> Heap::pages_under(const Allocation& made) const {
  PageIndex first = governor_->pool().index(made.address);
  const Span* span = map_->find(first);
  if (span->bytes) return {span->first, span->first + span->pages - 1};
  const char* address = static_cast<const char*>(made.address);
  const Block* b = span->region->at[static_cast<uint64_t>(address - span->region->base) / kGranule];
  auto [from, to] = pages_of(b->first, b->granules);
  return {span->first + from, span->first + to};
}

// Before a block is handed out. Who waits for the turn, or for the device, must not have the GIL in
// hand; who has the turn must not wait for the GIL.
void Heap::settle_for(const Allocation& made) {
  std::unique_lock turn(settling_, std::try_to_lock);
  bool quick = turn.owns_lock();
  if (quick) {
    std::lock_guard lock(mutex_);
    quick = !pending_.takes_long();
  }
  if (turn.owns_lock() && !quick) turn.unlock();
  std::exception_ptr failure;
  {
    std::optional<GilReleased> released;
    if (!quick) released.emplace();
    try {
      settle(turn);
    } catch (...) {
      if (is_pending(made)) {
        failure = std::current_exception();
        // With the turn in hand: nobody maps the pages that go with the block.
        Span* span = map_->find(governor_->pool().index(made.address));
        release_now(made.address, span, true);
        std::lock_guard lock(mutex_);
        drop_empty();
        drop_unready();
      }
    }
    if (turn.owns_lock()) turn.unlock();
  }
  if (failure) std::rethrow_exception(failure);
}

// With the lock in hand.
Heap::Found Heap::block_at(void* address, Span* span) const {
  if (span->bytes) {
    bool starts = address == governor_->pool().address(span->first);
    return {starts ? span->bytes : 0, kInExtent};
  }
  uint64_t offset = static_cast<uint64_t>(static_cast<char*>(address) - span->region->base);
  const Block* b = span->region->at[offset / kGranule];
  if (!b || !b->used) return {};
  offset -= b->first * kGranule;
  if (!b->slab)
    return {offset == 0 ? b->bytes : 0, b->persistent ? kAmongPersistent : kAmongTransient};
  uint64_t i = offset / b->slab->size;
  bool used = offset % b->slab->size == 0 && i < b->slab->count && b->slab->used[i];
  return {used ? b->slab->size : 0, kInSlab};
}

bool Heap::note_use(void* address, Span* span) {
  std::lock_guard lock(mutex_);
  if (!block_at(address, span).bytes) return false;
  if (counts_.used_elsewhere.try_emplace(address, UsedElsewhere{span, 0}).second)
    counts_.foreign.fetch_add(1, std::memory_order_relaxed);
  return true;
}

// Of a block that other streams use, with the lock in hand: it becomes free when these uses end.
uint64_t Heap::defer(void* address, UsedElsewhere& use) {
  auto [bytes, lies] = use.freed ? Found{} : block_at(address, use.span);
  if (bytes == 0) return 0;  // freed twice
  use.freed = governor_->fences().open(account_);
  queue(address, use.freed, bytes);
  count_free(bytes, lies);
  return bytes;
}

// With the lock in hand.
void Heap::queue(void* address, Batch batch, uint64_t bytes) {
  governor_->fences().count(account_, bytes);
  counts_.foreign_freed.fetch_add(1, std::memory_order_relaxed);
  counts_.freed_elsewhere.push_back({address, batch});
  counts_.heap_ended |= ended();
}

uint64_t Heap::release_or_defer(void* address, Span* span) {
  {
    std::lock_guard lock(mutex_);
    auto it = counts_.used_elsewhere.find(address);
    if (it != counts_.used_elsewhere.end()) return defer(address, it->second);
    // While the account captures a graph nothing can be fenced: it leaves later.
    Found block;
    if (!arena_ && counts_.captures.load(std::memory_order_relaxed))
      block = block_at(address, span);
    if (auto [bytes, lies] = block; bytes) {
      Batch batch = governor_->fences().open(account_);
      counts_.used_elsewhere[address] = {span, batch};
      counts_.foreign.fetch_add(1, std::memory_order_relaxed);
      queue(address, batch, bytes);
      count_free(bytes, lies);
      return bytes;
    }
  }
  return release_now(address, span, true);
}

void Heap::end_stream() {
  Stream old = stream_.exchange(Fences::kGone, std::memory_order_relaxed);
  governor_->forget_stream(old);
  std::lock_guard lock(mutex_);
  counts_.heap_ended = true;
}

void Heap::dissolve() {
  std::lock_guard turn(settling_);
  std::lock_guard lock(mutex_);
  arena_ = 0;
  counts_.heap_ended = true;
  drop_kept();
  drop_empty();
}

void finish_in_arenas(Governor& governor, Account& a) {
  if (a.foreign_freed.load(std::memory_order_relaxed) == 0) return;
  if (a.captures.load(std::memory_order_relaxed)) return;  // nothing is reclaimed then
  Batch latest = 0;
  {
    std::lock_guard lock(a.heaps);
    for (const auto& [address, u] : a.used_elsewhere)
      if (u.span->heap->is_arena()) latest = std::max(latest, u.freed);
  }
  if (latest == 0) return;
  GilReleased released;
  a.cpu_waits += governor.fences().finish(a.id, latest);
}

bool Heap::reclaim_all() {
  finish_in_arenas(*governor_, counts_);
  return reclaim(true);
}

namespace {
struct Chosen {
  void* address;
  Span* span;  // to be looked at with the lock only: another thread may take it back
  Batch freed;
  Stream own;  // of its heap
  bool waits;  // for its batch, on that stream
};

// With the lock of the account's heaps in hand.
std::optional<Chosen> still_there(const Account& a, const FreedElsewhere& freed) {
  auto it = a.used_elsewhere.find(freed.address);
  if (it == a.used_elsewhere.end() || it->second.freed != freed.batch) return {};
  Span* span = it->second.span;
  return Chosen{freed.address, span, freed.batch, span->heap->waits_on(), false};
}

// What has become free by itself: a batch passes after those before it, so where one has not, none
// behind it has. What was on a stream that is gone is not used there again, and who gets the pages
// waits. All stay in the queue until they have been taken back: others may need them so.
void choose_passed(Account& a, const Fences& fences, std::vector<Chosen>& chosen) {
  bool look_at_all = std::exchange(a.heap_ended, false);
  std::deque<FreedElsewhere>& all = a.freed_elsewhere;
  while (!all.empty() && !still_there(a, all.front())) all.pop_front();
  for (const FreedElsewhere& freed : all) {
    auto block = still_there(a, freed);
    if (!block) continue;
    if (block->span->heap->ended() || fences.passed(a.id, freed.batch))
      chosen.push_back(*block);
    else if (!look_at_all)
      return;
  }
}

// All, where somebody waits. What a graph gets it may use on any stream, so no wait of one is
// enough.
void choose_all(const Account& a, const Fences& fences, std::vector<Chosen>& chosen) {
  for (const FreedElsewhere& freed : a.freed_elsewhere) {
    auto block = still_there(a, freed);
    if (!block) continue;
    block->waits = !block->span->heap->ended() && !fences.passed(a.id, block->freed);
    if (!block->waits || !block->span->heap->is_arena()) chosen.push_back(*block);
  }
}

void wait_for(Governor& governor, Account& a, const std::vector<Chosen>& chosen) {
  std::vector<Stream> waiters;
  Batch latest = 0;
  for (const Chosen& block : chosen) {
    if (!block.waits) continue;
    latest = std::max(latest, block.freed);
    if (std::ranges::find(waiters, block.own) == waiters.end()) waiters.push_back(block.own);
  }
  for (Stream s : waiters) a.device_waits += governor.fences().wait(s, a.id, latest, a.id);
}

bool take_back(Account& a, const Chosen& block) {
  {
    std::lock_guard lock(a.heaps);
    // Another thread may have been quicker, and the address be used elsewhere once more: then its
    // batch is a later one, or it has none yet.
    if (!still_there(a, {block.address, block.freed})) return false;
    a.used_elsewhere.erase(block.address);
    a.foreign.fetch_sub(1, std::memory_order_relaxed);
    a.foreign_freed.fetch_sub(1, std::memory_order_relaxed);
    if (block.span->heap->release_at_once(block.address, block.span)) return true;
  }
  block.span->heap->release_now(block.address, block.span, false);
  return true;
}
}  // namespace

bool reclaim(Governor& governor, Account& a, bool wait) {
  if (a.foreign_freed.load(std::memory_order_relaxed) == 0) return false;
  if (a.captures.load(std::memory_order_relaxed))
    return false;  // what becomes free can't be fenced
  Fences& fences = governor.fences();
  fences.poll(a.id);
  std::vector<Chosen> chosen;
  {
    std::lock_guard lock(a.heaps);
    wait ? choose_all(a, fences, chosen) : choose_passed(a, fences, chosen);
  }
  wait_for(governor, a, chosen);
  bool any = false;
  for (const Chosen& block : chosen) any |= take_back(a, block);
  return any;
}

}  // namespace gpushare
