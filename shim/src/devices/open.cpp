#include "open.h"

#include <memory>
#include <string>

#include "cuda.h"
#include "host.h"

namespace gpushare {

namespace {

void check_fits(const CudaDevice& device, const gs_config& c) {
  if (size_t least = device.granularity(); c.page_bytes % least)
    throw DeviceFailure("page_bytes must be a multiple of " + std::to_string(least) +
                        " on this GPU, but got " + std::to_string(c.page_bytes));
  if (size_t most = device.memory(); c.budget_bytes > most)
    throw DeviceFailure("the budget must be at most the GPU's memory, " +
                        std::to_string(most >> 20) + " MiB, but got " +
                        std::to_string(c.budget_bytes >> 20) + " MiB");
}

Device* open_cuda(const gs_config& c) {
  // Never unloaded: memory is freed until the process ends.
  static const cuda::Driver* driver = nullptr;
  if (!driver) driver = c.driver ? new cuda::Driver(c.driver) : new cuda::Driver;
  auto device = std::make_unique<CudaDevice>(driver, c.device_index);
  check_fits(*device, c);
  return device.release();
}

}  // namespace

Device* open_device(const gs_config& c) {
  if (c.device_kind == GS_HOST) return new HostDevice;
  try {
    return open_cuda(c);
  } catch (const DeviceFailure& e) {
    throw DeviceFailure("cuda:" + std::to_string(c.device_index) + " can't be used: " + e.what());
  }
}

}  // namespace gpushare
