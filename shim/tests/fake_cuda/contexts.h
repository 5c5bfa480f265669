// The one device and its primary context, and what each thread has as current.
#pragma once

#include "report.h"

namespace gpushare::fake_cuda {

struct ThreadState {
  uint64_t machine = 0;  // the state belongs to the machine of that number; a later one begins anew
  CUcontext current = nullptr;
  CUstreamCaptureMode capture_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
};

class Contexts {
 public:
  explicit Contexts(Report& report) : report_(report) {}

  bool initialized = false;

  CUresult check_device(CUdevice device);
  CUresult retain(CUcontext* context, CUdevice device);
  CUresult release(CUdevice device);
  CUresult set_current(ThreadState& thread, CUcontext context);
  // Whether the thread has a context that can be used.
  CUresult check(const ThreadState& thread, const char* caller);

 private:
  Report& report_;
  unsigned retained_ = 0;
};

}  // namespace gpushare::fake_cuda
