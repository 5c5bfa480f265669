// A GPU's memory through the driver's virtual memory calls (CUDA Driver API, "Virtual Memory
// Management"). A frame is one physical allocation of a page's size; it may be mapped at several
// addresses, so it passes from job to job without being unmapped, behind a wait on the device.
#pragma once

#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "../device.h"
#include "cuda_driver.h"
#include "host_memory.h"

namespace gpushare {

class CudaDevice final : public Device {
 public:
  // Uses the primary context of the device, as torch does. Throws DeviceFailure.
  CudaDevice(const cuda::Driver* driver, int ordinal);
  ~CudaDevice() override;

  // Pages are a multiple of it, in bytes.
  size_t granularity() const;
  // Of the whole GPU, in bytes.
  size_t memory() const;

  char* reserve(size_t bytes, size_t page_bytes) override;
  bool aliases() const override { return true; }
  bool create(Frame frame) override;
  void destroy(Frame frame) override;
  void map(char* address, std::span<const Frame> frames) override;
  void unmap(char* address) override;

  bool asynchronous() const override { return true; }
  Stream make_stream(int priority) override;
  // Where the driver can't record, the stream is waited for: memory is freed where no error could
  // go. On a device that has failed nothing passes any more; who wants the memory is told.
  Event record(Stream stream) override;
  bool capturing(Stream stream) override;
  void break_capture(Stream stream) override;
  void abandon_capture(Stream stream) override;
  bool spoilt(Event event) override;
  void forget_event(Event event) override;
  bool passed(Event event) override;
  void finish(Event event) override;
  void make_wait(Stream waiter, Event event) override;

  bool can_copy_out(size_t bytes) override;
  bool copy_out(char* address, size_t bytes) override;
  void take_away(char* address, size_t bytes) override;
  bool bring_back(char* address, size_t bytes) override;
  void forget(char* address, size_t bytes) override;

  // Copies lie in the machine's own memory. To be set before any is made.
  uint64_t (*memory_left)() = [] { return host_memory_left(); };

 private:
  class Call;
  cuda::CUmemAllocationProp properties() const;
  cuda::CUmemGenericAllocationHandle handle(Frame frame);
  void unmap_pages(char* address, size_t pages);

  const cuda::Driver* driver_;
  cuda::CUdevice device_ = 0;
  cuda::CUcontext context_ = nullptr;
  cuda::CUstream copying_ = nullptr;  // synchronises with no other stream
  char* base_ = nullptr;
  size_t reserved_ = 0, page_bytes_ = 0;
  std::mutex mutex_;  // of what follows; the driver has locks of its own
  std::vector<cuda::CUmemGenericAllocationHandle> handles_;  // by frame
  std::vector<cuda::CUevent> unused_events_;
  std::unordered_map<char*, std::unique_ptr<char[]>> copies_;  // by address
};

}  // namespace gpushare
