// Of the bridge's own C surface, which gpushare/native/bridge.py calls: see workspaces.cpp and
// dropout_states.cpp too.
#include <c10/core/Allocator.h>

#include <exception>
#include <memory>
#include <string>

#include "allocator.h"

using gpushare::bridge::Allocator;

namespace gpushare::bridge::dropout_states {
void make_own();
}  // namespace gpushare::bridge::dropout_states

namespace {

Allocator* installed = nullptr;  // never destroyed: tensors outlive everything at exit

void install() {
  TORCH_CHECK(gs_api_version() == GS_API_VERSION, "the shim has API version ", gs_api_version(),
              ", the bridge was compiled for ", GS_API_VERSION);
  TORCH_CHECK(gs_device() >= 0, "the pool is not a GPU's");
  gpushare::bridge::dropout_states::make_own();  // before anything that can't be undone
  namespace caching = gpushare::bridge::caching;
  static Allocator* const allocator = new Allocator(caching::get()->name());
  torch::cuda::CUDAPluggableAllocator::changeCurrentAllocator(
      std::shared_ptr<caching::CUDAAllocator>(allocator, [](auto*) {}));
  // What torch.accelerator asks; of equal priority at least wins.
  c10::SetAllocator(c10::DeviceType::CUDA, allocator, UINT8_MAX);
  TORCH_CHECK(c10::GetAllocator(c10::DeviceType::CUDA) == allocator,
              "torch keeps another CUDA allocator");
  installed = allocator;
}

}  // namespace

// Makes the bridge torch's CUDA allocator. Must be called before torch has initialised CUDA. Null,
// or why it can't be; the text is valid until the next call.
extern "C" __attribute__((visibility("default"))) const char* gpushare_bridge_install() {
  static std::string why;
  try {
    install();
  } catch (const c10::Error& error) {
    why = error.what_without_backtrace();
    return why.c_str();
  } catch (const std::exception& error) {
    why = error.what();
    return why.c_str();
  }
  return nullptr;
}

// See Pools.
extern "C" __attribute__((visibility("default"))) int gpushare_bridge_captures(gs_account account) {
  return installed ? installed->captures(account) : 0;
}

extern "C" __attribute__((visibility("default"))) void gpushare_bridge_abandon_captures(
    gs_account account, int keep) {
  if (installed) installed->abandon_captures(account, keep);
}
