// The part of the driver's interface that only tests use: kernels, and memory of the host that
// kernels may write. Declared as shim/src/devices/cuda_api.h does it, and checked with it.
#pragma once

#include "../src/devices/cuda_api.h"

namespace gpushare::cuda {

struct CUmod_st;
struct CUfunc_st;
using CUmodule = CUmod_st*;
using CUfunction = CUfunc_st*;

// X(exported symbol, parameters); every one returns a CUresult.
#define GPUSHARE_KERNEL_ENTRY_POINTS(X)                                                      \
  X(cuModuleLoadData, (CUmodule * module, const void* image))                                \
  X(cuModuleGetFunction, (CUfunction * function, CUmodule module, const char* name))         \
  X(cuLaunchKernel, (CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, \
                     unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,  \
                     CUstream stream, void** parameters, void** extra))                      \
  X(cuMemHostAlloc, (void** address, size_t bytes, unsigned flags))

}  // namespace gpushare::cuda
