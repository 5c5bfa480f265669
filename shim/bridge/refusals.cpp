// What is not possible here, said where it is asked for, with what to do instead.
#include <c10/util/Exception.h>

#include "allocator.h"

namespace gpushare::bridge {

namespace {
[[noreturn]] void refuse(const char* text) { TORCH_CHECK(false, "gpushare: ", text); }
}  // namespace

void Allocator::setUseOnOOM(c10::DeviceIndex, PoolId, bool use) {
  if (use) refuse("a torch.cuda.MemPool with use_on_oom is not supported: leave the argument out");
}

void Allocator::setNoSplit(c10::DeviceIndex, PoolId) {
  refuse("a torch.cuda.MemPool with no_split is not supported: leave the argument out");
}

caching::ShareableHandle Allocator::shareIpcHandle(void*) {
  refuse(
      "a CUDA tensor can't be sent to another process, since its memory lies in the pool of this "
      "run: send tensor.cpu() instead");
}

std::shared_ptr<void> Allocator::getIpcDevPtr(std::string) {
  refuse(
      "a CUDA tensor of another process can't be received, since its memory lies outside the "
      "budget: send tensor.cpu() instead");
}

// Scripts switch it off without having switched it on.
void Allocator::recordHistory(bool enabled, caching::CreateContextFn, size_t,
                              caching::RecordContext, bool, const std::vector<std::string>&) {
  if (enabled)
    refuse(
        "the history of allocations is not recorded by this allocator: `gpushare run --trace` "
        "writes every allocation to a file");
}

void Allocator::attachAllocatorTraceTracker(caching::AllocatorTraceTracker) {
  refuse("allocations can't be followed by a callback");
}

void Allocator::enablePeerAccess(c10::DeviceIndex, c10::DeviceIndex) {
  refuse("a run uses one GPU: no other can reach its memory");
}

}  // namespace gpushare::bridge
