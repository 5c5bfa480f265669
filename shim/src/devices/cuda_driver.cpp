#include "cuda_driver.h"

#include <dlfcn.h>

#include "../device.h"

namespace gpushare::cuda {

Driver::Driver(const char* library) {
  void* driver = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (!driver) throw DeviceFailure(std::string("the CUDA driver can't be loaded: ") + dlerror());
#define GPUSHARE_CUDA_ENTRY(name, parameters)                            \
  name = reinterpret_cast<CUresult(*) parameters>(dlsym(driver, #name)); \
  if (!name) throw DeviceFailure("the CUDA driver is too old: it has no " #name);
  GPUSHARE_CUDA_ENTRY_POINTS(GPUSHARE_CUDA_ENTRY)
#undef GPUSHARE_CUDA_ENTRY
}

std::string Driver::words(CUresult result) const {
  const char *name = nullptr, *text = nullptr;
  if (cuGetErrorName(result, &name) != CUDA_SUCCESS || !name)
    return "error " + std::to_string(result);
  if (cuGetErrorString(result, &text) != CUDA_SUCCESS || !text) return name;
  return std::string(name) + ", " + text;
}

void Driver::check(CUresult result, const char* call) const {
  if (result == CUDA_SUCCESS) return;
  std::string why = std::string(call) + ": " + words(result);
  if (result == CUDA_ERROR_OUT_OF_MEMORY) throw DeviceFull(why);
  throw DeviceFailure(why);
}

}  // namespace gpushare::cuda
