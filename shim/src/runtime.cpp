#include "runtime.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace gpushare {

thread_local ThreadState thread_state = {};

// Each stream of a job that has blocks of middle size has a region at least, however small the
// budget is.
static uint64_t address_pages(const gs_config& c) {
  uint64_t bytes = c.address_bytes ? c.address_bytes : 16 * c.budget_bytes;
  uint64_t regions = c.address_bytes ? 16 : 256;
  return std::max(bytes, regions * c.region_bytes) / c.page_bytes;
}

// Never the same twice in a process, so no cache takes one runtime's heap for another's.
static uint64_t next_version() {
  static std::atomic<uint64_t> last{0};
  return last.fetch_add(1) + 1;
}

Runtime::Runtime(const gs_config& c, Device* device, Telemetry* telemetry)
    : telemetry_(telemetry),
      pool_device_(device),
      side_streams_(device),
      governor_(device, static_cast<Policy>(c.policy), c.page_bytes, c.budget_bytes / c.page_bytes,
                address_pages(c), telemetry),
      pool_contains_(&governor_.pool()),
      map_(address_pages(c)),
      region_bytes_(c.region_bytes),
      device_(c.device_kind == GS_CUDA ? c.device_index : -1),
      heaps_version_(next_version()) {}

// No lock that jobs share on the way of an allocation.
Heap& Runtime::heap(uint32_t account, Stream stream, uint32_t arena) {
  if (arena) return find_heap(account, stream, arena);
  if (stream == 0) {
    Heap* h = default_heap_[account].load(std::memory_order_acquire);
    return h ? *h : find_heap(account, stream, 0);
  }
  HeapCache& last = thread_state.last_heap;
  uint64_t version = heaps_version_.load(std::memory_order_acquire);
  bool same =
      last.version == version && last.heap->account() == account && last.heap->stream() == stream;
  if (!same) last = {&find_heap(account, stream, 0), version};
  return *last.heap;
}

Heap& Runtime::find_heap(uint32_t account, Stream stream, uint32_t arena) {
  std::lock_guard lock(heaps_mutex_);
  auto& slot = heaps_[{account, arena, stream}];
  if (!slot) {
    slot = std::make_unique<Heap>(&governor_, &map_, account, stream, arena, region_bytes_);
    governor_.fences().add_stream(account, stream);
  }
  if (stream == 0 && !arena) default_heap_[account].store(slot.get(), std::memory_order_release);
  return *slot;
}

// Small blocks and extents lie on pages of their own, whatever their kind.
bool Runtime::will_persist(Account& a, uint64_t bytes) const {
  if (bytes <= Heap::kSmallMost || bytes >= Heap::kExtentLeast || a.id == GS_SHARED) return true;
  if (a.in_iteration.load(std::memory_order_relaxed))
    return a.kinds.persistent(a.recorder.ordinal(), bytes);
  a.kinds.note_set_up(bytes);
  return true;
}

// For the log: what the profiled iteration lets expect of the next allocation.
Kind Runtime::expected_kind(const Account& a, uint64_t bytes) const {
  if (!a.in_iteration.load(std::memory_order_relaxed) || !a.kinds.learned()) return Kind::kUnknown;
  bool stays = a.kinds.persistent(a.recorder.ordinal(), bytes);
  return stays ? Kind::kPersistent : Kind::kPassing;
}

void* Runtime::allocate(uint64_t bytes, uint32_t account, Stream stream, bool no_wait,
                        uint32_t arena) {
  Account& a = governor_.account(account);
  if (governor_.forking() && account && !no_wait) governor_.stop_for_fork(account);
  bool may_stop = a.stop.load(std::memory_order_acquire) != Stop::kNowhere && !no_wait;
  if (may_stop && governor_.stops_here(account)) pass_door(account);
  Kind kind = governor_.log().on() ? expected_kind(a, bytes) : Kind::kUnknown;
  auto [p, block_bytes] =
      heap(account, stream, arena).allocate(bytes, no_wait, will_persist(a, bytes));
  governor_.fences().close_if_full(account);  // now that it may use again what it has just freed
  if (a.in_iteration.load(std::memory_order_relaxed))
    a.recorder.note(a.held.load(std::memory_order_relaxed), bytes);
  if (a.tracing.load(std::memory_order_relaxed)) a.trace.allocated(p, block_bytes, stream);
  if (governor_.log().on()) log(Logged::kAllocated, account, stream, p, bytes, kind);
  return p;
}

void Runtime::pass_door(uint32_t account) {
  governor_.fences().close(account);
  reclaim(governor_, governor_.account(account), false);
  governor_.pass_door(account);
}

void Runtime::log(Logged what, uint32_t account, Stream stream, const void* address, uint64_t bytes,
                  Kind kind) {
  governor_.log().add(what, account, stream, telemetry_->slot(account, kIterations), address, bytes,
                      kind);
}

bool Runtime::release(void* address) {
  Span* span = map_.find(governor_.pool().index(address));
  if (!span) return refuse_free(address, nullptr);
  Heap* heap = span->heap;
  Account& a = governor_.account(heap->account());
  if (governor_.log().on()) log(Logged::kFreed, a.id, heap->stream(), address, 0);
  if (bad_frees_.on()) remember_free(address, span);
  uint64_t bytes = heap->release(address, span);
  if (bytes == 0) return refuse_free(address, span);
  if (a.tracing.load(std::memory_order_relaxed)) a.trace.freed(address, bytes, heap->stream());
  governor_.fences().close_if_full(a.id);
  return true;
}

// What was freed can't tell what it was any more, so this comes before. Who still reads it finds
// numbers that are no one's.
void Runtime::remember_free(void* address, Span* span) {
  constexpr int kFreedByte = 0xDB;
  uint64_t bytes = span->heap->bytes_at(address, span);
  if (bytes == 0) return;
  uint32_t freer = thread_state.account;
  bad_frees_.freed(address, bytes, span->heap->account(), freer,
                   telemetry_->slot(freer, kIterations));
  if (!governor_.asynchronous())
    governor_.unless_copied_out(span->heap->account(), [&] { memset(address, kFreedByte, bytes); });
}

bool Runtime::refuse_free(const void* address, Span* span) {
  uint32_t freer = thread_state.account;
  governor_.account(freer).bad_frees.fetch_add(1, std::memory_order_relaxed);
  if (!bad_frees_.on()) return false;
  BadFree inside = {};
  if (span) {
    inside.bytes = span->heap->block_around(address, span, &inside.offset);
    inside.owner = span->heap->account();
  }
  bad_frees_.report(address, freer, inside);
  return false;
}

bool Runtime::note_use(void* address, Stream stream) {
  Span* span = map_.find(governor_.pool().index(address));
  if (!span) return false;
  Heap* heap = span->heap;
  if (heap->serves(stream) || !governor_.asynchronous()) return true;
  governor_.fences().add_stream(heap->account(), stream);
  return heap->note_use(address, span);
}

void Runtime::begin_stream(uint32_t account, Stream stream) {
  governor_.fences().add_stream(account, stream);
  std::lock_guard lock(streams_mutex_);
  if (stream) job_of_[stream] = account;  // stream 0 is everybody's
}

uint32_t Runtime::account_of(Stream stream) {
  if (!stream) return GS_SHARED;
  std::lock_guard lock(streams_mutex_);
  auto it = job_of_.find(stream);
  return it == job_of_.end() ? uint32_t{GS_SHARED} : it->second;
}

void Runtime::end_stream(Stream stream) {
  {
    std::lock_guard lock(streams_mutex_);
    job_of_.erase(stream);
  }
  if (!governor_.asynchronous() || stream == 0) return;
  governor_.fences().remove_stream(stream);
  end_heaps(stream, [](uint32_t) { return true; });
}

void Runtime::leave_stream(uint32_t account, Stream stream) {
  if (!governor_.asynchronous() || stream == 0) return;
  governor_.fences().remove_stream(stream, account);
  end_heaps(stream, [=](uint32_t of) { return of == account; });
}

void Runtime::end_heaps(Stream stream, const std::function<bool(uint32_t)>& of_account) {
  std::lock_guard lock(heaps_mutex_);
  // Another stream may come to have the same handle, and would take the heaps for its own.
  heaps_version_.store(next_version(), std::memory_order_release);
  for (auto it = heaps_.begin(); it != heaps_.end();) {
    auto here = it++;
    auto [account, arena, of] = here->first;
    if (of != stream || arena || !of_account(account)) continue;
    here->second->end_stream();
    here->second->trim();
    ended_.push_back(std::move(here->second));
    heaps_.erase(here);
  }
}

void Runtime::begin_capture(uint32_t account) {
  governor_.account(account).captures.fetch_add(1);
  // What was freed until now can leave while the capture is under way; and what was issued has its
  // events, should a stream be gone before that ends.
  Fences& fences = governor_.fences();
  fences.settles(account, fences.open(account));
}

void Runtime::end_capture(uint32_t account) {
  // One that failed is ended twice, and a job may end before its captures do.
  std::atomic<uint32_t>& captures = governor_.account(account).captures;
  uint32_t before = captures.load();
  while (before && !captures.compare_exchange_weak(before, before - 1)) {
  }
  if (before != 1) return;
  std::set<uint32_t> late;
  {
    std::lock_guard lock(heaps_mutex_);
    late.swap(late_arenas_[account]);
  }
  for (uint32_t arena : late) end_arena(account, arena);
}

void Runtime::end_arena(uint32_t account, uint32_t arena) {
  if (!arena) return;
  std::lock_guard lock(heaps_mutex_);
  if (governor_.account(account).captures.load()) {  // what leaves now can't be fenced
    late_arenas_[account].insert(arena);
    return;
  }
  for (auto it = heaps_.lower_bound({account, arena, 0}); it != heaps_.end();) {
    auto [id, a, stream] = it->first;
    if (id != account || a != arena) break;
    it->second->dissolve();
    ended_.push_back(std::move(it->second));
    it = heaps_.erase(it);
  }
}

// What outlives its job is freed into heaps that keep a page, and a slab of each class, for more.
// On a GPU such heaps have ended.
void Runtime::trim_ended() {
  for (uint32_t id = 1; id < kAccounts; ++id) {
    Account& a = governor_.account(id);
    if (a.held.load(std::memory_order_relaxed) == 0) continue;
    if (telemetry_->slot(id, kState) != kEnded) continue;
    uint64_t frees = a.frees.load(std::memory_order_relaxed);
    if (std::exchange(frees_seen_[id], frees) != frees) trim(id);
  }
}

void Runtime::tick() {
  governor_.tick();
  if (!governor_.asynchronous()) return trim_ended();
  for (uint32_t id = 0; id < kAccounts; ++id) {
    governor_.fences().close_if_full(id);
    reclaim(governor_, governor_.account(id), false);
  }
}

int Runtime::owner(const void* address) const {
  if (!contains(address)) return -1;
  Span* span = map_.find(pool_contains_->index(address));
  return span ? static_cast<int>(span->heap->account()) : -1;
}

std::set<uint32_t> Runtime::arenas(uint32_t account) {
  std::lock_guard lock(heaps_mutex_);
  std::set<uint32_t> found;
  for (auto& [key, heap] : heaps_)
    if (std::get<0>(key) == account && std::get<1>(key)) found.insert(std::get<1>(key));
  return found;
}

void Runtime::end_job(uint32_t account) {
  trim(account);  // who waits for this end is judged by what is left
  governor_.end_job(account, true);
  governor_.account(account).captures = 0;  // one that failed may not have been ended
  for (uint32_t arena : arenas(account)) end_arena(account, arena);
  std::vector<Stream> streams = governor_.fences().streams(account);
  // All that are captured together first; the thread that ends the job has begun most of them.
  for (Stream stream : streams)
    if (account_of(stream) == account) governor_.fences().abandon_capture(stream);
  // Its streams are about to go. What lives on is used by others at their own risk.
  for (Stream stream : streams)
    if (account_of(stream) == account)
      end_stream(stream);
    else
      leave_stream(account, stream);
  trim(account);
}

void Runtime::trim(uint32_t account) {
  std::lock_guard lock(heaps_mutex_);
  for (auto& [key, heap] : heaps_)
    if (std::get<0>(key) == account) heap->trim();
  for (auto& heap : ended_)
    if (heap->account() == account) heap->trim();
}

std::string Runtime::check() {
  {
    std::lock_guard lock(heaps_mutex_);
    for (auto& [key, heap] : heaps_) {
      std::string wrong = heap->check();
      if (!wrong.empty()) return wrong;
    }
    for (auto& heap : ended_) {
      std::string wrong = heap->check();
      if (!wrong.empty()) return wrong;
    }
  }
  return governor_.check();
}

}  // namespace gpushare
