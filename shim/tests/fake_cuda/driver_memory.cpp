// Entry points: device memory, where it is mapped, and copies.
#include "call.h"
#include "driver.h"

using namespace gpushare::fake_cuda;

namespace gpushare::cuda {

namespace {

Operation to_host(void* to, CUdeviceptr from, size_t bytes) {
  return {Operation::kToHost, from, bytes, 0, to, 1};
}

Operation to_device(CUdeviceptr to, const void* from, size_t bytes) {
  return {Operation::kToDevice, to, bytes, 0, const_cast<void*>(from), 1};
}

}  // namespace

CUresult cuMemGetInfo_v2(size_t* free, size_t* total) {
  return call(EntryPoint::cuMemGetInfo_v2,
              [&](Machine& machine, ThreadState&) { return machine.memory.info(free, total); });
}

CUresult cuMemGetAllocationGranularity(size_t* granularity, const CUmemAllocationProp* properties,
                                       CUmemAllocationGranularity_flags option) {
  return call(EntryPoint::cuMemGetAllocationGranularity, [&](Machine& machine, ThreadState&) {
    if (auto wrong = machine.memory.check_properties(properties)) return wrong;
    if (!granularity || option > CU_MEM_ALLOC_GRANULARITY_RECOMMENDED)
      return machine.report.misuse(CUDA_ERROR_INVALID_VALUE,
                                   "cuMemGetAllocationGranularity: unknown option");
    *granularity = machine.memory.granularity;
    return CUDA_SUCCESS;
  });
}

// The hint is only a hint: the fake never takes it.
CUresult cuMemAddressReserve(CUdeviceptr* address, size_t bytes, size_t alignment, CUdeviceptr,
                             unsigned long long flags) {
  return call(EntryPoint::cuMemAddressReserve, [&](Machine& machine, ThreadState&) {
    return machine.memory.reserve(address, bytes, alignment, flags);
  });
}

CUresult cuMemAddressFree(CUdeviceptr address, size_t bytes) {
  return call(EntryPoint::cuMemAddressFree, [&](Machine& machine, ThreadState&) {
    return machine.memory.unreserve(address, bytes);
  });
}

CUresult cuMemCreate(CUmemGenericAllocationHandle* handle, size_t bytes,
                     const CUmemAllocationProp* properties, unsigned long long flags) {
  return call(EntryPoint::cuMemCreate, [&](Machine& machine, ThreadState&) {
    return machine.memory.create(handle, bytes, properties, flags);
  });
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
  return call(EntryPoint::cuMemRelease,
              [&](Machine& machine, ThreadState&) { return machine.memory.release(handle); });
}

CUresult cuMemMap(CUdeviceptr address, size_t bytes, size_t offset,
                  CUmemGenericAllocationHandle handle, unsigned long long flags) {
  return call(EntryPoint::cuMemMap, [&](Machine& machine, ThreadState&) {
    return machine.memory.map(address, bytes, offset, handle, flags);
  });
}

CUresult cuMemUnmap(CUdeviceptr address, size_t bytes) {
  return call(EntryPoint::cuMemUnmap,
              [&](Machine& machine, ThreadState&) { return machine.memory.unmap(address, bytes); });
}

CUresult cuMemSetAccess(CUdeviceptr address, size_t bytes, const CUmemAccessDesc* descriptions,
                        size_t count) {
  return call(EntryPoint::cuMemSetAccess, [&](Machine& machine, ThreadState&) {
    return machine.memory.set_access(address, bytes, descriptions, count);
  });
}

CUresult cuMemcpyDtoH_v2(void* to, CUdeviceptr from, size_t bytes) {
  return call(EntryPoint::cuMemcpyDtoH_v2, [&](Machine& machine, ThreadState&) {
    return machine.copy_now(to_host(to, from, bytes));
  });
}

CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void* from, size_t bytes) {
  return call(EntryPoint::cuMemcpyHtoD_v2, [&](Machine& machine, ThreadState&) {
    return machine.copy_now(to_device(to, from, bytes));
  });
}

CUresult cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return call(EntryPoint::cuMemcpyDtoHAsync_v2, [&](Machine& machine, ThreadState&) {
    return machine.issue(stream, to_host(to, from, bytes));
  });
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, size_t bytes, CUstream stream) {
  return call(EntryPoint::cuMemcpyHtoDAsync_v2, [&](Machine& machine, ThreadState&) {
    return machine.issue(stream, to_device(to, from, bytes));
  });
}

CUresult cuMemsetD8Async(CUdeviceptr address, unsigned char value, size_t bytes, CUstream stream) {
  return call(EntryPoint::cuMemsetD8Async, [&](Machine& machine, ThreadState&) {
    uint64_t tag = value * 0x0101010101010101u;
    return machine.issue(stream, {Operation::kWrite, address, bytes, tag, nullptr, 1});
  });
}

}  // namespace gpushare::cuda
