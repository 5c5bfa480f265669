// What a test calls in torch's CUDA allocator, whichever is installed, that Python can't reach.
#include <ATen/Context.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAStream.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <typeinfo>
#include <vector>

#include "gpushare.h"

#define EXPORTED extern "C" __attribute__((visibility("default")))

namespace {

namespace caching = c10::cuda::CUDACachingAllocator;
using Pool = c10::MempoolId_t;

cudaStream_t handle(uint64_t stream) { return reinterpret_cast<cudaStream_t>(stream); }

struct Block {
  char* address;
  size_t bytes;
};

// One thread's part: random sizes, each block marked, checked and freed by whoever holds it.
bool churn(gs_account account, uint64_t stream, int rounds, unsigned seed) {
  gs_thread_enter(account, nullptr);
  std::vector<Block> kept;
  bool right = true;
  auto drop = [&](size_t i) {
    Block b = kept[i];
    right = right && gs_owner(b.address) == account;
    for (size_t at : {size_t{0}, b.bytes - 1})
      right = right && b.address[at] == static_cast<char>(account);
    caching::raw_delete(b.address);
    kept[i] = kept.back();
    kept.pop_back();
  };
  for (int n = 0; n < rounds; ++n) {
    seed = seed * 1664525u + 1013904223u;
    size_t bytes = 1 + (seed >> 8) % (size_t{1} << (8 + seed % 16));
    auto* p = static_cast<char*>(caching::raw_alloc_with_stream(bytes, handle(stream)));
    right = right && reinterpret_cast<uintptr_t>(p) % 512 == 0;
    p[0] = p[bytes - 1] = static_cast<char>(account);
    kept.push_back({p, bytes});
    if (kept.size() > 24) drop((seed >> 4) % kept.size());
  }
  while (!kept.empty()) drop(0);
  gs_thread_leave();
  return right;
}

std::string said(const std::function<void()>& call) {
  try {
    call();
  } catch (const c10::Error& error) {
    return error.what_without_backtrace();
  }
  return "";
}

}  // namespace

EXPORTED int is_installed() {
  caching::CUDAAllocator& current = *caching::get();
  return c10::GetAllocator(c10::DeviceType::CUDA) == &current &&
         strstr(typeid(current).name(), "gpushare") != nullptr;
}

// Threads at once under each of the accounts 1 .. jobs; how many saw something wrong.
EXPORTED int churn_all(int jobs, int threads, int rounds, const uint64_t* streams) {
  std::atomic<int> wrong{0};
  std::vector<std::thread> running;
  for (int t = 0; t < jobs * threads; ++t)
    running.emplace_back([&, t] {
      int job = t % jobs;
      wrong += !churn(job + 1, streams[job], rounds, static_cast<unsigned>(t) + 7);
    });
  for (auto& thread : running) thread.join();
  return wrong;
}

// A tensor's memory: made by the allocator, freed by its deleter, in another thread than made.
EXPORTED void record_stream(void* address, uint64_t stream) {
  c10::DataPtr block(address, address, caching::get()->raw_deleter(), c10::Device("cuda:0"));
  caching::recordStream(block, c10::cuda::getStreamFromExternal(handle(stream), 0));
  block.release_context();
}
EXPORTED void record_foreign(void* address, uint64_t stream) {
  c10::DataPtr block(address, address, [](void*) {}, c10::Device("cuda:0"));
  caching::recordStream(block, c10::cuda::getStreamFromExternal(handle(stream), 0));
}
EXPORTED void delete_elsewhere(void* address) {
  std::thread([address] { caching::get()->raw_deleter()(address); }).join();
}

EXPORTED void pool_begin(uint64_t id, uint64_t stream) {
  caching::beginAllocateToPool(0, {0, id},
                               [stream](cudaStream_t s) { return s == handle(stream); });
}
EXPORTED void pool_end(uint64_t id) { caching::endAllocateToPool(0, {0, id}); }
EXPORTED void pool_release(uint64_t id) { caching::releasePool(0, {0, id}); }
EXPORTED void pool_use(uint64_t id) { caching::createOrIncrefPool(0, {0, id}); }
EXPORTED int pool_users(uint64_t id) { return caching::getPoolUseCount(0, {0, id}); }
EXPORTED int pool_has_just(uint64_t id, void* address) {
  std::unordered_set<void*> expected;
  if (address) expected.insert(address);
  return caching::checkPoolLiveAllocations(0, {0, id}, expected);
}
EXPORTED uint64_t pool_snapshot_bytes(uint64_t id) {
  uint64_t bytes = 0;
  for (const auto& segment : caching::snapshot({0, id}).segments) {
    if (segment.owner_private_pool_id != Pool{0, id}) return UINT64_MAX;
    bytes += segment.allocated_size;
  }
  return bytes;
}
#ifdef TELLS_CAPTURES
EXPORTED void capture(int begins) {
  begins ? caching::markCaptureBegin(0) : caching::markCaptureEnd(0);
}
#endif

EXPORTED uint64_t base_bytes(void* address) {
  size_t bytes = 0;
  return caching::getBaseAllocation(address, &bytes) == address ? bytes : 0;
}
EXPORTED uint64_t cache_info() {
  size_t largest = 0;
  caching::cacheInfo(0, &largest);
  return largest;
}
EXPORTED uint64_t total_bytes() { return caching::get()->getMemoryInfo(0).second; }

// What each of these is refused with; empty if it is not.
EXPORTED const char* refusal(const char* what) {
  static thread_local std::string text;
  std::string name = what;
  text = said([&] {
    if (name == "ipc out") caching::shareIpcHandle(nullptr);
    if (name == "ipc in") caching::getIpcDevPtr("");
    if (name == "checkpoint") caching::getCheckpointState(0, {0, 1});
    if (name == "restore") caching::setCheckpointPoolState(0, nullptr);
    if (name == "no split") caching::setNoSplit(0, {0, 1});
    if (name == "use on oom") caching::setUseOnOOM(0, {0, 1}, true);
    if (name == "no use on oom") caching::setUseOnOOM(0, {0, 1}, false);
    if (name == "history") caching::recordHistory(true, nullptr, 1, {}, false, {});
    if (name == "no history") caching::recordHistory(false, nullptr, 1, {}, false, {});
    if (name == "tracker") caching::attachAllocatorTraceTracker({});
    if (name == "peer") caching::enablePeerAccess(0, 1);
    if (name == "base") caching::getBaseAllocation(&name, nullptr);
    if (name == "end of nothing") caching::endAllocateToPool(0, {0, 999});
    if (name == "release of nothing") caching::releasePool(0, {0, 999});
    if (name == "observer") caching::attachOutOfMemoryObserver({});
  });
  return text.c_str();
}

static std::atomic<uint64_t> observed;
EXPORTED void observe() {
  caching::attachOutOfMemoryObserver(
      [](int64_t, size_t bytes, size_t, size_t) { observed = bytes; });
}
EXPORTED uint64_t observed_bytes() { return observed; }

// Of the calling thread's default generator, as torch's C++ finds it.
EXPORTED uint64_t default_seed() {
  return at::globalContext().defaultGenerator(c10::Device(c10::kCUDA, 0)).current_seed();
}
