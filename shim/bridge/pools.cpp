#include "pools.h"

#include <ATen/core/CachingHostAllocator.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <utility>

namespace gpushare::bridge {

namespace {

// Torch's allocator of pinned memory asks each capture under way whose a stream is. Torch 2.11
// leaves one there whose end has failed, with a filter that names a graph which is gone. Torch that
// has no such captures is not asked.
template <typename Pinned = at::HostAllocator>
void end_in_pinned_memory(PoolId id) {
  if constexpr (requires(Pinned& pinned) { pinned.end_allocate_to_pool(id); }) {
    try {
      at::getHostAllocator(at::kCUDA)->end_allocate_to_pool(id);
    } catch (const c10::Error&) {
      // It had none, or has ended it.
    }
  }
}

}  // namespace

gs_arena Pools::arena(gs_account account, cudaStream_t stream) {
  Routes& routes = routes_[account];
  if (routes.count.load(std::memory_order_acquire) == 0) return 0;
  std::lock_guard lock(routes.mutex);
  for (auto r = routes.all.rbegin(); r != routes.all.rend(); ++r)
    if (r->filter(stream)) return r->arena;
  return 0;
}

// With the lock in hand.
Pools::Pool& Pools::use(gs_account account, PoolId id) {
  auto [it, made] = pools_.try_emplace(id, Pool{account, last_arena_ + 1, 0});
  if (made) ++last_arena_;
  TORCH_CHECK(it->second.account == account,
              "gpushare: a memory pool of one job can't be used by another");
  ++it->second.users;
  return it->second;
}

void Pools::begin(gs_account account, PoolId id, Filter filter, bool captures) {
  gs_arena arena;
  {
    std::lock_guard lock(mutex_);
    arena = use(account, id).arena;
  }
  Routes& routes = routes_[account];
  Route made{id, arena, std::move(filter), captures, std::this_thread::get_id()};
  if (!routes.add(std::move(made))) {
    remove_user(id);
    TORCH_CHECK(false, "beginAllocateToPool: already recording to mempool_id");
  }
  if (captures) gs_capture_begin(account);
}

bool Pools::Routes::add(Route route) {
  std::lock_guard lock(mutex);
  if (std::ranges::find(all, route.id, &Route::id) != all.end()) return false;
  all.push_back(std::move(route));
  count.fetch_add(1, std::memory_order_release);
  return true;
}

void Pools::end(PoolId id) {
  std::optional<Pool> pool = find(id);
  TORCH_CHECK(pool, "gpushare: nothing allocates to this memory pool");
  Routes& routes = routes_[pool->account];
  bool captured = false;
  {
    std::lock_guard lock(routes.mutex);
    auto it = std::ranges::find(routes.all, id, &Route::id);
    TORCH_CHECK(it != routes.all.end(), "gpushare: nothing allocates to this memory pool");
    captured = it->captures;
    routes.all.erase(it);
    routes.count.fetch_sub(1, std::memory_order_release);
  }
  if (captured) gs_capture_end(pool->account);
}

int Pools::captures(gs_account account) {
  Routes& routes = routes_[account];
  std::lock_guard lock(routes.mutex);
  return static_cast<int>(std::ranges::count_if(routes.all, &Route::is_capture_here));
}

void Pools::abandon_captures(gs_account account, int keep) {
  Routes& routes = routes_[account];
  std::vector<PoolId> gone;
  {
    std::lock_guard lock(routes.mutex);
    int seen = 0;
    std::erase_if(routes.all, [&](const Route& r) {
      if (!r.is_capture_here() || ++seen <= keep) return false;
      gone.push_back(r.id);
      return true;
    });
    routes.count.fetch_sub(static_cast<int>(gone.size()), std::memory_order_release);
  }
  for (PoolId id : gone) {
    gs_capture_end(account);
    end_in_pinned_memory(id);
  }
}

void Pools::add_user(gs_account account, PoolId id) {
  std::lock_guard lock(mutex_);
  use(account, id);
}

void Pools::remove_user(PoolId id) {
  Pool pool{};
  {
    std::lock_guard lock(mutex_);
    auto it = pools_.find(id);
    TORCH_CHECK(it != pools_.end(), "gpushare: this memory pool is gone already");
    pool = it->second;
    if (--it->second.users > 0) return;
    pools_.erase(it);
  }
  gs_arena_end(pool.account, pool.arena);
}

std::optional<Pools::Pool> Pools::find(PoolId id) {
  std::lock_guard lock(mutex_);
  auto it = pools_.find(id);
  return it == pools_.end() ? std::nullopt : std::optional(it->second);
}

PoolId Pools::id_of(gs_arena arena) {
  std::lock_guard lock(mutex_);
  for (const auto& [id, pool] : pools_)
    if (pool.arena == arena) return id;
  return {0, 0};
}

}  // namespace gpushare::bridge
