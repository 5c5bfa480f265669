// The driver's entry points as functions, for the fake and for tests that link it.
#pragma once

#include "../../src/devices/cuda_api.h"

namespace gpushare::cuda {

extern "C" {
#define DECLARE(name, parameters) __attribute__((visibility("default"))) CUresult name parameters;
GPUSHARE_CUDA_ENTRY_POINTS(DECLARE)
#undef DECLARE
}

}  // namespace gpushare::cuda
