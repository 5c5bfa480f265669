// A subclass of torch's pluggable allocator that answers what the stock one throws at, counts which
// way memory is asked for, and can hammer the base class's bookkeeping from several threads.
#include <torch/csrc/cuda/CUDAPluggableAllocator.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#define EXPORTED extern "C" __attribute__((visibility("default")))

namespace {
using Base = torch::cuda::CUDAPluggableAllocator::CUDAPluggableAllocator;
using Alloc = void* (*)(size_t, int, cudaStream_t);
using Free = void (*)(void*, size_t, int, cudaStream_t);
enum Call {
  Allocate,
  RawAlloc,
  RawAllocWithStream,
  RawDelete,
  CacheInfo,
  DeviceStats,
  Resets,
  kCalls
};

std::atomic<int64_t> counts[kCalls];
constexpr int64_t kStatedBytes = 123456789;

struct Bridge : Base {
  using Base::Base;
  c10::DataPtr allocate(size_t bytes) override {
    ++counts[Allocate];
    return Base::allocate(bytes);
  }
  void* raw_alloc(size_t bytes) override {
    ++counts[RawAlloc];
    return Base::raw_alloc(bytes);
  }
  void* raw_alloc_with_stream(size_t bytes, cudaStream_t stream) override {
    ++counts[RawAllocWithStream];
    return Base::raw_alloc_with_stream(bytes, stream);
  }
  void raw_delete(void* address) override {
    ++counts[RawDelete];
    Base::raw_delete(address);
  }
  void cacheInfo(c10::DeviceIndex, size_t* largest) override {
    ++counts[CacheInfo];
    *largest = size_t{1} << 30;
  }
  c10::CachingDeviceAllocator::DeviceStats getDeviceStats(c10::DeviceIndex) override {
    ++counts[DeviceStats];
    c10::CachingDeviceAllocator::DeviceStats stats;
    stats.allocated_bytes[0].current = kStatedBytes;
    stats.allocated_bytes[0].peak = 2 * kStatedBytes;
    return stats;
  }
  void resetAccumulatedStats(c10::DeviceIndex) override { ++counts[Resets]; }
  void resetPeakStats(c10::DeviceIndex) override { ++counts[Resets]; }
};

std::shared_ptr<Bridge> installed;

// Memory that is only an address of its own per thread and turn: what remains is the bookkeeping.
void* no_memory(size_t, int, cudaStream_t) {
  static std::atomic<uintptr_t> next{1 << 20};
  return reinterpret_cast<void*>(next += 512);
}
void no_free(void*, size_t, int, cudaStream_t) {}

double nanoseconds_per_pair(Base& allocator, int threads, int pairs) {
  std::vector<std::thread> running;
  const auto begin = std::chrono::steady_clock::now();
  for (int t = 0; t < threads; ++t)
    running.emplace_back([&] {
      for (int i = 0; i < pairs; ++i)
        allocator.raw_delete(allocator.raw_alloc_with_stream(512, nullptr));
    });
  for (auto& thread : running) thread.join();
  const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begin;
  return took.count() / pairs;
}
}  // namespace

// Null when it is installed, else what went wrong.
EXPORTED const char* install_bridge(void* alloc, void* free) {
  static std::string why;
  try {
    installed =
        std::make_shared<Bridge>(reinterpret_cast<Alloc>(alloc), reinterpret_cast<Free>(free));
    torch::cuda::CUDAPluggableAllocator::changeCurrentAllocator(installed);
  } catch (const std::exception& error) {
    why = error.what();
    return why.c_str();
  }
  return nullptr;
}

EXPORTED int64_t bridge_calls(int which) { return counts[which]; }
EXPORTED int64_t bridge_stated_bytes() { return kStatedBytes; }

// Nanoseconds that a thread needs for an allocation and its free while `threads` do so at once.
EXPORTED double bookkeeping_ns(int threads, int pairs) {
  Base allocator(no_memory, no_free);
  return nanoseconds_per_pair(allocator, threads, pairs);
}
