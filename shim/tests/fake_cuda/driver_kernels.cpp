// Entry points with which a program of the tests launches its kernels (../cuda_kernels.h), as it
// does with a real driver. There are two, by name; what their module's image says is not read.
#include <cstring>
#include <memory>
#include <vector>

#include "../cuda_kernel_api.h"
#include "machine.h"

using namespace gpushare::fake_cuda;

namespace gpushare::cuda {

extern "C" {
#define DECLARE(name, parameters) __attribute__((visibility("default"))) CUresult name parameters;
GPUSHARE_KERNEL_ENTRY_POINTS(DECLARE)
#undef DECLARE
}

namespace {

char module_of_all, write_tag, read_tag;  // handles are their addresses

template <class Work>
CUresult with_context(const char* name, Work work) {
  Locked machine;
  if (auto wrong = machine->contexts.check(machine.thread(), name)) return wrong;
  return work(*machine);
}

template <class T>
T parameter(void** parameters, int index) {
  T value;
  memcpy(&value, parameters[index], sizeof value);
  return value;
}

}  // namespace

CUresult cuModuleLoadData(CUmodule* module, const void* image) {
  return with_context("cuModuleLoadData", [&](Machine& machine) {
    if (!image) return machine.report.misuse(CUDA_ERROR_INVALID_VALUE, "a module without image");
    *module = reinterpret_cast<CUmodule>(&module_of_all);
    return CUDA_SUCCESS;
  });
}

CUresult cuModuleGetFunction(CUfunction* function, CUmodule, const char* name) {
  return with_context("cuModuleGetFunction", [&](Machine& machine) {
    bool write = strcmp(name, "write_tag") == 0;
    if (!write && strcmp(name, "read_tag") != 0)
      return machine.report.misuse(CUDA_ERROR_NOT_FOUND, std::string("no kernel ") + name);
    *function = reinterpret_cast<CUfunction>(write ? &write_tag : &read_tag);
    return CUDA_SUCCESS;
  });
}

CUresult cuLaunchKernel(CUfunction function, unsigned, unsigned, unsigned, unsigned, unsigned,
                        unsigned, unsigned, CUstream stream, void** parameters, void**) {
  return with_context("cuLaunchKernel", [&](Machine& machine) {
    auto kind =
        reinterpret_cast<char*>(function) == &write_tag ? Operation::kWrite : Operation::kRead;
    void* counts = kind == Operation::kRead ? parameter<void*>(parameters, 4) : nullptr;
    return machine.issue(
        stream,
        {kind, parameter<CUdeviceptr>(parameters, 0), 8 * parameter<uint64_t>(parameters, 1),
         parameter<uint64_t>(parameters, 2), counts, 1 + parameter<uint64_t>(parameters, 3)});
  });
}

// As a process that ends gives it back, so does the fake.
CUresult cuMemHostAlloc(void** address, size_t bytes, unsigned) {
  static std::vector<std::unique_ptr<uint64_t[]>> made;
  return with_context("cuMemHostAlloc", [&](Machine&) {
    made.push_back(std::make_unique<uint64_t[]>((bytes + 7) / 8));
    *address = made.back().get();
    return CUDA_SUCCESS;
  });
}

}  // namespace gpushare::cuda
