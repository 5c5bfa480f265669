#include "contexts.h"

#include <cstdlib>
#include <sstream>

namespace gpushare::fake_cuda {

namespace {

CUcontext primary() { return reinterpret_cast<CUcontext>(0x43000010); }

// The driver takes the devices that are named, in that order, up to the first that is not there.
std::vector<int> visible_devices() {
  const char* there = getenv("FAKE_CUDA_DEVICES");
  const char* named = there ? getenv("CUDA_VISIBLE_DEVICES") : nullptr;
  int count = there ? atoi(there) : 1;
  std::vector<int> found;
  if (!named) {
    for (int device = 0; device < count; ++device) found.push_back(device);
    return found;
  }
  std::istringstream names(named);
  for (std::string name; std::getline(names, name, ',');) {
    char* end = nullptr;
    long device = strtol(name.c_str(), &end, 10);
    if (end == name.c_str() || device < 0 || device >= count) break;
    found.push_back(static_cast<int>(device));
  }
  return found;
}

}  // namespace

Contexts::Contexts(Report& report) : report_(report), visible_(visible_devices()) {}

std::string Contexts::name(CUdevice device) const {
  int number = visible_[static_cast<size_t>(device)];
  return number ? "Fake CUDA device " + std::to_string(number) : "Fake CUDA device";
}

CUresult Contexts::check_device(CUdevice device) {
  if (device >= 0 && device < devices()) return CUDA_SUCCESS;
  return report_.misuse(
      CUDA_ERROR_INVALID_DEVICE,
      "there are " + std::to_string(devices()) + " devices, but got " + std::to_string(device));
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
