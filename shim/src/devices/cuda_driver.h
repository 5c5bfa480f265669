// The CUDA driver, loaded when it is needed: building and loading the shim needs neither CUDA nor a
// GPU.
#pragma once

#include <string>

#include "cuda_api.h"

namespace gpushare::cuda {

struct Driver {
#define GPUSHARE_CUDA_ENTRY(name, parameters) CUresult(*name) parameters = nullptr;
  GPUSHARE_CUDA_ENTRY_POINTS(GPUSHARE_CUDA_ENTRY)
#undef GPUSHARE_CUDA_ENTRY

  // Throws DeviceFailure if the library or one of its functions is missing.
  explicit Driver(const char* library = "libcuda.so.1");
  // Throws DeviceFailure with the call's name and the driver's words, unless it is CUDA_SUCCESS.
  void check(CUresult result, const char* call) const;
  std::string words(CUresult result) const;
};

}  // namespace gpushare::cuda
