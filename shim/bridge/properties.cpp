// A GPU's properties, as torch keeps them. Follows ATen/cuda/CUDAContextLight.h, which is not
// included since it needs headers of CUDA's libraries.
#include <c10/core/Device.h>
#include <cuda_runtime_api.h>

namespace at::cuda {
TORCH_CUDA_CPP_API cudaDeviceProp* getDeviceProperties(c10::DeviceIndex device);
}  // namespace at::cuda

// torch.cuda.get_device_properties(device).total_memory from now on, for the whole process. Torch
// must have initialised CUDA.
extern "C" __attribute__((visibility("default"))) void gpushare_bridge_total_memory(
    int device, uint64_t bytes) {
  at::cuda::getDeviceProperties(static_cast<c10::DeviceIndex>(device))->totalGlobalMem = bytes;
}
