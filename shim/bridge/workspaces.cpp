// cuBLAS's workspaces of one job. Torch keeps one for each handle and stream, and clears all of
// them at once (at::cuda::clearCublasWorkspaces): also those that another job's capture has just
// put into its graph. Follows ATen/cuda/CUDAContextLight.h, which needs headers of CUDA's libraries
// that a toolkit may lack, and of CCCL (nv/target), since cuBLAS's include cuda_fp16.h.
#if __has_include(<cublas_v2.h>) && __has_include(<cublasLt.h>) && \
    __has_include(<cusparse.h>) && __has_include(<cusolverDn.h>) && \
    __has_include(<nv/target>)
#define GPUSHARE_KNOWS_WORKSPACES 1
#include <ATen/cuda/CUDAContextLight.h>
#endif

#include <mutex>
#include <utility>
#include <vector>

#include "allocator.h"

namespace gpushare::bridge {

namespace {

#ifdef GPUSHARE_KNOWS_WORKSPACES
// What leaves is freed after the lock: whoever looks for a workspace waits for that.
template <typename Workspaces>
void clear(Workspaces& all, gs_account account) {
  std::vector<typename decltype(all.map)::node_type> gone;
  std::unique_lock lock(all.mutex);
  for (auto it = all.map.begin(); it != all.map.end();) {
    auto here = it++;
    auto stream = reinterpret_cast<gs_stream>(std::get<1>(here->first));
    if (gs_stream_account(stream) == account) gone.push_back(all.map.extract(here));
  }
  lock.unlock();
}

bool clear_workspaces(gs_account account) {
  clear(at::cuda::cublas_handle_stream_to_workspace(), account);
  clear(at::cuda::cublaslt_handle_stream_to_workspace(), account);
  return true;
}
#else
bool clear_workspaces(gs_account) { return false; }
#endif

}  // namespace

}  // namespace gpushare::bridge

// Those of the account's streams, which were begun for it. 0: this bridge does not know them.
extern "C" __attribute__((visibility("default"))) int gpushare_bridge_clear_workspaces(
    gs_account account) {
  return gpushare::bridge::clear_workspaces(account);
}
