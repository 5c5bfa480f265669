// Memory: from torch's calls to the shim's. No lock that jobs share is taken here.
#include "allocator.h"

#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/util/Exception.h>

#include <cstdio>

namespace gpushare::bridge {

namespace {

gs_stream number(cudaStream_t stream) { return reinterpret_cast<gs_stream>(stream); }

// For torch.profiler with profile_memory: what the calling thread's job has now.
void report(void* address, int64_t bytes, int device) {
  gs_memory m{};
  if (gs_memory_get(gs_thread_account(), &m) != 0) return;
  c10::reportMemoryUsageToProfiler(address, bytes, m.live_bytes, m.held_bytes,
                                   c10::Device(c10::DeviceType::CUDA, static_cast<int8_t>(device)));
}

// A deleter carries no state: the shim finds the block's owner by its address.
void give_back(void* address) {
  bool told = address && c10::memoryProfilingEnabled();
  auto bytes = told ? static_cast<int64_t>(gs_block_bytes(address)) : 0;
  gs_free(address, gs_device(), 0);
  if (bytes) report(address, -bytes, gs_device());
}

// As torch writes sizes in its own message.
std::string written(size_t bytes) {
  double n = static_cast<double>(bytes);
  char text[32];
  if (bytes < size_t{1} << 20)
    snprintf(text, sizeof text, "%.2f KiB", n / 1024.0);
  else if (bytes < size_t{1} << 30)
    snprintf(text, sizeof text, "%.2f MiB", n / 1048576.0);
  else
    snprintf(text, sizeof text, "%.2f GiB", n / 1073741824.0);
  return text;
}

c10::DeviceIndex current_device() {
  c10::DeviceIndex device = 0;
  C10_CUDA_CHECK(c10::cuda::GetDevice(&device));
  return device;
}

}  // namespace

// The base class gets functions that do the same, for ways to it that a later torch may add.
Allocator::Allocator(std::string name)
    : Base([this](size_t bytes, int device,
                  cudaStream_t stream) { return obtain(bytes, device, stream); },
           [](void* address, size_t, int, cudaStream_t) { give_back(address); }),
      name_(std::move(name)) {
  for (auto& fraction : fraction_) fraction = 1.0;
}

void* Allocator::obtain(size_t bytes, int device, cudaStream_t stream) {
  if (bytes == 0) return nullptr;
  gs_account account = gs_thread_account();  // of a thread that has none: the shim asks the stream
  gs_arena arena = pools_.arena(account, stream);
  void* block = gs_try_alloc(bytes, device, account, number(stream), arena);
  if (!block) fail(bytes, device);
  if (c10::memoryProfilingEnabled())
    report(block, static_cast<int64_t>(gs_block_bytes(block)), device);
  return block;
}

// The words "CUDA out of memory." are what libraries look for.
void Allocator::fail(size_t bytes, int device) {
  std::string why = gs_last_error();
  if (gs_last_failure() == GS_INTERRUPTED) gs_raise_interrupt(gs_thread_account());
  TORCH_CHECK(gs_last_failure() == GS_OUT_OF_MEMORY, why);
  tell_observers(device, bytes);
  TORCH_CHECK_WITH(OutOfMemoryError, false, "CUDA out of memory. Tried to allocate ",
                   written(bytes), ". ", why);
}

c10::DataPtr Allocator::allocate(size_t bytes) {
  c10::DeviceIndex device = current_device();
  void* block =
      bytes ? obtain(bytes, device, c10::cuda::getCurrentCUDAStream(device).stream()) : nullptr;
  return {block, block, &give_back, c10::Device(c10::DeviceType::CUDA, device)};
}

void* Allocator::raw_alloc(size_t bytes) {
  c10::DeviceIndex device = current_device();
  return obtain(bytes, device, c10::cuda::getCurrentCUDAStream(device).stream());
}

// A stream belongs to one device, and there is no other than the pool's.
void* Allocator::raw_alloc_with_stream(size_t bytes, cudaStream_t stream) {
  return obtain(bytes, gs_device(), stream);
}

void Allocator::raw_delete(void* address) { give_back(address); }

c10::DeleterFnPtr Allocator::raw_deleter() const { return &give_back; }

void Allocator::recordStream(const c10::DataPtr& block, c10::cuda::CUDAStream stream) {
  // Memory that came from elsewhere (another library's, by DLPack) is its owner's concern.
  if (!block.get() || block.get_deleter() != &give_back) return;
  TORCH_CHECK(gs_record_stream(block.get(), number(stream.stream())) == 0, gs_last_error());
}

// Each block is an allocation of its own to whoever asks where the one begins in which it lies.
void* Allocator::getBaseAllocation(void* address, size_t* bytes) {
  size_t found = gs_block_bytes(address);
  TORCH_CHECK(found, "gpushare: no block of this run starts at ", address);
  if (bytes) *bytes = found;
  return address;
}

void Allocator::emptyCache(PoolId) { gs_trim(gs_thread_account()); }

}  // namespace gpushare::bridge
