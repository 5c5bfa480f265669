// Which allocations belong to the private memory pool of a CUDA graph (or to a torch.cuda.MemPool),
// and how many use that pool: torch's MempoolId_t on one side, the shim's arenas on the other.
//
// Follows beginAllocateToPool, endAllocateToPool, releasePool, createOrIncrefPool and
// getPoolUseCount of c10/cuda/CUDACachingAllocator.h. A pool is of the account that first named it.
#pragma once

#include <c10/cuda/CUDACachingAllocator.h>

#include <array>
#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "gpushare.h"

namespace gpushare::bridge {

using PoolId = c10::MempoolId_t;
using Filter = std::function<bool(cudaStream_t)>;

class Pools {
 public:
  struct Pool {
    gs_account account;
    gs_arena arena;
    int users;
  };

  // The arena in which an allocation of the account on the stream falls; 0: none. Takes a lock only
  // while the account allocates to a pool.
  gs_arena arena(gs_account account, cudaStream_t stream);
  // From now on what passes the filter goes to the pool, which has one user more. `captures`: the
  // account captures a graph until end(). Throws c10::Error: the pool is another account's, or
  // something allocates to it already.
  void begin(gs_account account, PoolId id, Filter filter, bool captures);
  void end(PoolId id);
  // Captures of the calling thread that are under way, as far as torch has told.
  int captures(gs_account account);
  // The latest of these, all but `keep`, which torch has not ended nor will: no more goes to their
  // pools.
  void abandon_captures(gs_account account, int keep);
  void add_user(gs_account account, PoolId id);
  // Without users the pool is gone: its memory can leave once its blocks are freed.
  void remove_user(PoolId id);
  std::optional<Pool> find(PoolId id);
  // {0, 0} for arena 0 and those that are gone.
  PoolId id_of(gs_arena arena);

 private:
  struct Route {
    PoolId id;
    gs_arena arena;
    Filter filter;
    bool captures;
    std::thread::id thread;

    bool is_capture_here() const { return captures && thread == std::this_thread::get_id(); }
  };
  struct Routes {
    std::atomic<int> count{0};
    std::mutex mutex;
    std::vector<Route> all;  // the latest counts: one within another, as torch searches them

    // False: something allocates to that pool already. Who ended first would end the other's.
    bool add(Route route);
  };
  Pool& use(gs_account account, PoolId id);

  std::array<Routes, GS_MAX_ACCOUNTS> routes_;
  std::mutex mutex_;  // of what follows; never together with a route's
  std::map<PoolId, Pool> pools_;
  gs_arena last_arena_ = 0;
};

}  // namespace gpushare::bridge
