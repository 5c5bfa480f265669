#include "contexts.h"

namespace gpushare::fake_cuda {

namespace {

CUcontext primary() { return reinterpret_cast<CUcontext>(0x43000010); }

}  // namespace

CUresult Contexts::check_device(CUdevice device) {
  if (device == 0) return CUDA_SUCCESS;
  return report_.misuse(CUDA_ERROR_INVALID_DEVICE,
                        "there is device 0 only, but got " + std::to_string(device));
}

CUresult Contexts::retain(CUcontext* context, CUdevice device) {
  if (auto wrong = check_device(device)) return wrong;
  if (!context)
    return report_.misuse(CUDA_ERROR_INVALID_VALUE, "cuDevicePrimaryCtxRetain: a null pointer");
  ++retained_;
  *context = primary();
  return CUDA_SUCCESS;
}

CUresult Contexts::release(CUdevice device) {
  if (auto wrong = check_device(device)) return wrong;
  if (!retained_)
    return report_.misuse(CUDA_ERROR_INVALID_CONTEXT,
                          "cuDevicePrimaryCtxRelease: the context is not retained");
  --retained_;
  return CUDA_SUCCESS;
}

CUresult Contexts::set_current(ThreadState& thread, CUcontext context) {
  if (context && (context != primary() || !retained_))
    return report_.misuse(CUDA_ERROR_INVALID_CONTEXT,
                          "cuCtxSetCurrent: " + hex(reinterpret_cast<uintptr_t>(context)) +
                              " is no retained context");
  thread.current = context;
  return CUDA_SUCCESS;
}

CUresult Contexts::check(const ThreadState& thread, const char* caller) {
  if (!thread.current)
    return report_.misuse(CUDA_ERROR_INVALID_CONTEXT,
                          std::string(caller) + ": the thread has no current context");
  if (!retained_)
    return report_.misuse(CUDA_ERROR_CONTEXT_IS_DESTROYED,
                          std::string(caller) + ": the thread's context was released");
  return CUDA_SUCCESS;
}

}  // namespace gpushare::fake_cuda
