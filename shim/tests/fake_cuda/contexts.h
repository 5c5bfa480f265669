// The devices and their one primary context, and what each thread has as current. There is one
// device; or as many as the environment says (FAKE_CUDA_DEVICES), of which CUDA_VISIBLE_DEVICES
// names those that are seen. They share their memory.
#pragma once

#include <vector>

#include "report.h"

namespace gpushare::fake_cuda {

struct ThreadState {
  uint64_t machine = 0;  // the state belongs to the machine of that number; a later one begins anew
  CUcontext current = nullptr;
  CUstreamCaptureMode capture_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
};

class Contexts {
 public:
  explicit Contexts(Report& report);

  bool initialized = false;

  int devices() const { return static_cast<int>(visible_.size()); }
  std::string name(CUdevice device) const;
  CUresult check_device(CUdevice device);
  CUresult retain(CUcontext* context, CUdevice device);
  CUresult release(CUdevice device);
  CUresult set_current(ThreadState& thread, CUcontext context);
  // Whether the thread has a context that can be used.
  CUresult check(const ThreadState& thread, const char* caller);

 private:
  Report& report_;
  unsigned retained_ = 0;
  std::vector<int> visible_;  // which device each is by the machine's count
};

}  // namespace gpushare::fake_cuda
