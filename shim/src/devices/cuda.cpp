#include "cuda.h"

#include <new>

namespace gpushare {

using namespace cuda;

namespace {
CUdeviceptr pointer(const char* address) { return reinterpret_cast<CUdeviceptr>(address); }
CUstream stream_of(Stream s) { return reinterpret_cast<CUstream>(s); }
CUevent event_of(Event e) { return reinterpret_cast<CUevent>(e); }
constexpr int kTries = 3;
constexpr Event kNever = 1;  // of a stream that could be neither recorded nor waited for
}  // namespace

// A call of the driver from any thread: in the device's context, and allowed while some thread
// captures a graph, since it touches no stream that is captured (as torch's own allocator does).
class CudaDevice::Call {
 public:
  explicit Call(const CudaDevice& d) : driver_(*d.driver_) {
    driver_.cuCtxGetCurrent(&before_);
    if (before_ != d.context_) driver_.cuCtxSetCurrent(d.context_);
    // A thread that uses no device yet may well stay in this one's context.
    if (before_ == d.context_) before_ = nullptr;
    driver_.cuThreadExchangeStreamCaptureMode(&mode_);
  }
  ~Call() {
    driver_.cuThreadExchangeStreamCaptureMode(&mode_);
    if (before_) driver_.cuCtxSetCurrent(before_);
  }
  Call(const Call&) = delete;
  const Driver* operator->() const { return &driver_; }

 private:
  const Driver& driver_;
  CUcontext before_ = nullptr;
  CUstreamCaptureMode mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;
};

CudaDevice::CudaDevice(const Driver* driver, int ordinal) : driver_(driver) {
  driver->check(driver->cuInit(0), "cuInit");
  driver->check(driver->cuDeviceGet(&device_, ordinal), "cuDeviceGet");
  driver->check(driver->cuDevicePrimaryCtxRetain(&context_, device_), "cuDevicePrimaryCtxRetain");
  Call call(*this);
  driver->check(call->cuStreamCreate(&copying_, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
}

CudaDevice::~CudaDevice() {
  {
    Call call(*this);
    for (CUevent e : unused_events_) call->cuEventDestroy_v2(e);
    call->cuStreamDestroy_v2(copying_);
    for (auto handle : handles_)
      if (handle) call->cuMemRelease(handle);
    if (base_) call->cuMemAddressFree(pointer(base_), reserved_);
  }
  driver_->cuDevicePrimaryCtxRelease_v2(device_);
}

CUmemAllocationProp CudaDevice::properties() const {
  CUmemAllocationProp p{};
  p.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  p.location = {CU_MEM_LOCATION_TYPE_DEVICE, device_};
  return p;
}

size_t CudaDevice::granularity() const {
  size_t bytes = 0;
  CUmemAllocationProp p = properties();
  Call call(*this);
  driver_->check(call->cuMemGetAllocationGranularity(&bytes, &p, CU_MEM_ALLOC_GRANULARITY_MINIMUM),
                 "cuMemGetAllocationGranularity");
  return bytes;
}

size_t CudaDevice::memory() const {
  size_t free = 0, total = 0;
  Call call(*this);
  driver_->check(call->cuMemGetInfo_v2(&free, &total), "cuMemGetInfo");
  return total;
}

char* CudaDevice::reserve(size_t bytes, size_t page_bytes) {
  CUdeviceptr base = 0;
  Call call(*this);
  if (call->cuMemAddressReserve(&base, bytes, page_bytes, 0, 0) != CUDA_SUCCESS) return nullptr;
  page_bytes_ = page_bytes;
  reserved_ = bytes;
  return base_ = reinterpret_cast<char*>(base);
}

CUmemGenericAllocationHandle CudaDevice::handle(Frame frame) {
  std::lock_guard lock(mutex_);
  return handles_[frame];
}

bool CudaDevice::create(Frame frame) {
  CUmemGenericAllocationHandle made = 0;
  CUmemAllocationProp p = properties();
  Call call(*this);
  CUresult result = call->cuMemCreate(&made, page_bytes_, &p, 0);
  if (result == CUDA_ERROR_OUT_OF_MEMORY) return false;
  driver_->check(result, "cuMemCreate");
  std::lock_guard lock(mutex_);
  if (handles_.size() <= frame) handles_.resize(frame + 1);
  handles_[frame] = made;
  return true;
}

void CudaDevice::destroy(Frame frame) {
  Call call(*this);
  call->cuMemRelease(handle(frame));
  std::lock_guard lock(mutex_);
  handles_[frame] = 0;
}

void CudaDevice::unmap_pages(char* address, size_t pages) {
  Call call(*this);
  for (size_t i = 0; i < pages; ++i)
    call->cuMemUnmap(pointer(address + i * page_bytes_), page_bytes_);
}

void CudaDevice::map(char* address, std::span<const Frame> frames) {
  Call call(*this);
  size_t mapped = 0;
  try {
    for (; mapped < frames.size(); ++mapped) {
      CUdeviceptr page = pointer(address + mapped * page_bytes_);
      auto map = [&] { return call->cuMemMap(page, page_bytes_, 0, handle(frames[mapped]), 0); };
      CUresult result = map();
      // Perhaps what lay there could not be unmapped.
      if (result != CUDA_SUCCESS && call->cuMemUnmap(page, page_bytes_) == CUDA_SUCCESS)
        result = map();
      driver_->check(result, "cuMemMap");
    }
    CUmemAccessDesc access{{CU_MEM_LOCATION_TYPE_DEVICE, device_},
                           CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    driver_->check(call->cuMemSetAccess(pointer(address), mapped * page_bytes_, &access, 1),
                   "cuMemSetAccess");
  } catch (const DeviceFailure&) {
    unmap_pages(address, mapped);
    throw;
  }
}

void CudaDevice::unmap(char* address) { unmap_pages(address, 1); }

Stream CudaDevice::make_stream(int priority) {
  CUstream made = nullptr;
  Call call(*this);
  driver_->check(call->cuStreamCreateWithPriority(&made, CU_STREAM_NON_BLOCKING, priority),
                 "cuStreamCreateWithPriority");
  return reinterpret_cast<Stream>(made);
}

Event CudaDevice::record(Stream stream) {
  Call call(*this);
  CUevent event = nullptr;
  {
    std::lock_guard lock(mutex_);
    if (!unused_events_.empty()) event = unused_events_.back(), unused_events_.pop_back();
  }
  if (!event && call->cuEventCreate(&event, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS)
    event = nullptr;
  if (event && call->cuEventRecord(event, stream_of(stream)) == CUDA_SUCCESS)
    return reinterpret_cast<Event>(event);
  if (event) forget_event(reinterpret_cast<Event>(event));
  return call->cuStreamSynchronize(stream_of(stream)) == CUDA_SUCCESS ? 0 : kNever;
}

bool CudaDevice::capturing(Stream stream) {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  Call call(*this);
  CUresult result = call->cuStreamIsCapturing(stream_of(stream), &status);
  // The legacy stream comes after all blocking ones: it has no status while one is captured, and
  // what is recorded on it would spoil that capture.
  return result == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT || status != CU_STREAM_CAPTURE_STATUS_NONE;
}

void CudaDevice::break_capture(Stream stream) {
  Call call(*this);
  call->cuStreamSynchronize(stream_of(stream));
}

// What is broken has no graph that would have to be destroyed.
void CudaDevice::abandon_capture(Stream stream) {
  break_capture(stream);
  CUgraph none = nullptr;
  Call call(*this);
  call->cuStreamEndCapture(stream_of(stream), &none);
}

bool CudaDevice::spoilt(Event event) {
  if (event == 0 || event == kNever) return false;
  Call call(*this);
  return call->cuEventQuery(event_of(event)) == CUDA_ERROR_CAPTURED_EVENT;
}

void CudaDevice::forget_event(Event event) {
  if (event == 0 || event == kNever) return;
  std::lock_guard lock(mutex_);
  unused_events_.push_back(event_of(event));
}

bool CudaDevice::passed(Event event) {
  if (event == 0 || event == kNever) return event == 0;
  Call call(*this);
  return call->cuEventQuery(event_of(event)) == CUDA_SUCCESS;
}

void CudaDevice::finish(Event event) {
  if (event == 0) return;
  Call call(*this);
  CUresult result = CUDA_ERROR_UNKNOWN;
  for (int n = 0; event != kNever && result != CUDA_SUCCESS && n < kTries; ++n)
    result = call->cuEventSynchronize(event_of(event));
  driver_->check(result, "cuEventSynchronize");
}

void CudaDevice::make_wait(Stream waiter, Event event) {
  if (event == 0) return;
  Call call(*this);
  CUresult result = CUDA_ERROR_UNKNOWN;
  if (event != kNever) result = call->cuStreamWaitEvent(stream_of(waiter), event_of(event), 0);
  driver_->check(result, "cuStreamWaitEvent");
}

// Most of what is left may be taken: jobs need some of it themselves.
bool CudaDevice::can_copy_out(size_t bytes) {
  uint64_t left = memory_left();
  return bytes <= left - left / 8;
}

bool CudaDevice::copy_out(char* address, size_t bytes) {
  std::unique_ptr<char[]> copy(new (std::nothrow) char[bytes]);
  if (!copy) return false;
  Call call(*this);
  if (call->cuMemcpyDtoHAsync_v2(copy.get(), pointer(address), bytes, copying_) != CUDA_SUCCESS ||
      call->cuStreamSynchronize(copying_) != CUDA_SUCCESS)
    return false;
  std::lock_guard lock(mutex_);
  copies_[address] = std::move(copy);
  return true;
}

void CudaDevice::take_away(char* address, size_t) { unmap(address); }

bool CudaDevice::bring_back(char* address, size_t bytes) {
  std::unique_ptr<char[]> copy;
  {
    std::lock_guard lock(mutex_);
    copy = std::move(copies_[address]);
    copies_.erase(address);
  }
  if (!copy) return false;
  Call call(*this);
  return call->cuMemcpyHtoDAsync_v2(pointer(address), copy.get(), bytes, copying_) ==
             CUDA_SUCCESS &&
         call->cuStreamSynchronize(copying_) == CUDA_SUCCESS;
}

void CudaDevice::forget(char* address, size_t) {
  std::lock_guard lock(mutex_);
  copies_.erase(address);
}

}  // namespace gpushare
