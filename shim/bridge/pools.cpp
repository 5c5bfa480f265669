#include "pools.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <utility>

namespace gpushare::bridge {

gs_arena Pools::arena(gs_account account, cudaStream_t stream) {
  Routes& routes = routes_[account];
  if (routes.count.load(std::memory_order_acquire) == 0) return 0;
  std::lock_guard lock(routes.mutex);
  for (const Route& r : routes.all)
    if (r.filter(stream)) return r.arena;
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
  if (captures) gs_capture_begin(account);
  Routes& routes = routes_[account];
  std::lock_guard lock(routes.mutex);
  routes.all.push_back({id, arena, std::move(filter), captures, std::this_thread::get_id()});
  routes.count.fetch_add(1, std::memory_order_release);
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
  int gone = 0;
  {
    std::lock_guard lock(routes.mutex);
    int seen = 0;
    gone = static_cast<int>(std::erase_if(
        routes.all, [&](const Route& r) { return r.is_capture_here() && ++seen > keep; }));
    routes.count.fetch_sub(gone, std::memory_order_release);
  }
  for (; gone > 0; --gone) gs_capture_end(account);
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
