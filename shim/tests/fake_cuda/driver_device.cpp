// Entry points: the driver, its devices, contexts and results.
#include <cstdio>

#include "call.h"
#include "driver.h"

using namespace gpushare::fake_cuda;

namespace gpushare::cuda {

namespace {

const char* name_of(CUresult result) {
  switch (result) {
#define NAME(name, value) \
  case name:              \
    return #name;
    GPUSHARE_CUDA_RESULTS(NAME)
#undef NAME
  }
  return nullptr;
}

CUresult describe(EntryPoint e, CUresult result, const char** text) {
  return call(e, [&](Machine& machine, ThreadState&) {
    if (!text) return machine.report.misuse(CUDA_ERROR_INVALID_VALUE, "a null pointer");
    *text = name_of(result);
    return *text ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  });
}

template <class Value>
CUresult give(Machine& machine, Value* to, Value value) {
  if (!to) return machine.report.misuse(CUDA_ERROR_INVALID_VALUE, "a null pointer for a result");
  *to = value;
  return CUDA_SUCCESS;
}

}  // namespace

CUresult cuInit(unsigned flags) {
  return call(EntryPoint::cuInit, [&](Machine& machine, ThreadState&) {
    if (flags) return machine.report.misuse(CUDA_ERROR_INVALID_VALUE, "cuInit: flags must be 0");
    machine.contexts.initialized = true;
    return CUDA_SUCCESS;
  });
}

CUresult cuDriverGetVersion(int* version) {
  return call(EntryPoint::cuDriverGetVersion,
              [&](Machine& machine, ThreadState&) { return give(machine, version, 13000); });
}

CUresult cuGetErrorName(CUresult error, const char** name) {
  return describe(EntryPoint::cuGetErrorName, error, name);
}

// The real one gives a sentence; who prints it does not care which.
CUresult cuGetErrorString(CUresult error, const char** text) {
  return describe(EntryPoint::cuGetErrorString, error, text);
}

CUresult cuDeviceGetCount(int* count) {
  return call(EntryPoint::cuDeviceGetCount, [&](Machine& machine, ThreadState&) {
    return give(machine, count, machine.contexts.devices());
  });
}

CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  return call(EntryPoint::cuDeviceGet, [&](Machine& machine, ThreadState&) {
    if (auto wrong = machine.contexts.check_device(ordinal)) return wrong;
    return give(machine, device, ordinal);
  });
}

CUresult cuDeviceGetName(char* name, int length, CUdevice device) {
  return call(EntryPoint::cuDeviceGetName, [&](Machine& machine, ThreadState&) {
    if (auto wrong = machine.contexts.check_device(device)) return wrong;
    if (!name || length <= 0)
      return machine.report.misuse(CUDA_ERROR_INVALID_VALUE, "cuDeviceGetName: no room");
    snprintf(name, static_cast<size_t>(length), "%s", machine.contexts.name(device).c_str());
    return CUDA_SUCCESS;
  });
}

CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  return call(EntryPoint::cuDevicePrimaryCtxRetain, [&](Machine& machine, ThreadState&) {
    return machine.contexts.retain(context, device);
  });
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  return call(EntryPoint::cuDevicePrimaryCtxRelease_v2,
              [&](Machine& machine, ThreadState&) { return machine.contexts.release(device); });
}

CUresult cuCtxSetCurrent(CUcontext context) {
  return call(EntryPoint::cuCtxSetCurrent, [&](Machine& machine, ThreadState& thread) {
    return machine.contexts.set_current(thread, context);
  });
}

CUresult cuCtxGetCurrent(CUcontext* context) {
  return call(EntryPoint::cuCtxGetCurrent, [&](Machine& machine, ThreadState& thread) {
    return give(machine, context, thread.current);
  });
}

CUresult cuCtxSynchronize() {
  return call(EntryPoint::cuCtxSynchronize, [](Machine& machine, ThreadState&) {
    if (auto wrong = machine.captures.wait_for_device()) return wrong;
    return machine.synchronize_all();
  });
}

}  // namespace gpushare::cuda
