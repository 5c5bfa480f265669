// Work that tells owners of memory apart, on the streams of any driver: a kernel that writes a tag
// into each 8 bytes, and one that looks for it. Both begin late if they are told to. The fake
// driver knows them by their names (fake_cuda/driver_kernels.cpp).
#pragma once

#include <dlfcn.h>

#include <algorithm>
#include <cstdint>
#include <string>

#include "../src/device.h"
#include "../src/devices/cuda_driver.h"
#include "cuda_kernel_api.h"

namespace gpushare::cuda {

// What was found first where something else had been written; in memory of the host.
struct WrongReads {
  uint64_t count, address, found, expected;
};

class Kernels {
 public:
  // The context must be current. Throws DeviceFailure.
  Kernels(const Driver& driver, const char* library) : driver_(driver) {
    void* opened = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (!opened) throw DeviceFailure(std::string("the CUDA driver can't be loaded: ") + dlerror());
#define GPUSHARE_KERNEL_ENTRY(name, parameters)                          \
  name = reinterpret_cast<CUresult(*) parameters>(dlsym(opened, #name)); \
  if (!name) throw DeviceFailure("the CUDA driver has no " #name);
    GPUSHARE_KERNEL_ENTRY_POINTS(GPUSHARE_KERNEL_ENTRY)
#undef GPUSHARE_KERNEL_ENTRY
    CUmodule module;
    driver_.check(cuModuleLoadData(&module, kSource), "cuModuleLoadData");
    driver_.check(cuModuleGetFunction(&write_, module, "write_tag"), "cuModuleGetFunction");
    driver_.check(cuModuleGetFunction(&read_, module, "read_tag"), "cuModuleGetFunction");
    wrong_ = static_cast<WrongReads*>(host_memory(sizeof *wrong_));
    *wrong_ = {};
  }

  // Of a multiple of 8 bytes at a multiple of 8.
  void write(CUstream stream, CUdeviceptr at, uint64_t bytes, uint64_t tag, uint64_t delay_ns) {
    launch(write_, stream, at, bytes, tag, delay_ns);
  }
  void read(CUstream stream, CUdeviceptr at, uint64_t bytes, uint64_t tag, uint64_t delay_ns) {
    launch(read_, stream, at, bytes, tag, delay_ns);
  }
  // Read it when the device is idle.
  const WrongReads& wrong() const { return *wrong_; }
  // Pinned, and at the same address for the device; never given back.
  void* host_memory(size_t bytes) {
    void* made = nullptr;
    driver_.check(cuMemHostAlloc(&made, bytes, 1 | 2), "cuMemHostAlloc");  // PORTABLE, DEVICEMAP
    return made;
  }

 private:
  static constexpr unsigned kThreads = 256;
  static constexpr uint64_t kBlocks = 16;  // few, so that the kernels of all jobs run at once

  void launch(CUfunction kernel, CUstream stream, CUdeviceptr at, uint64_t bytes, uint64_t tag,
              uint64_t delay_ns) {
    uint64_t words = bytes / 8;
    auto wrong = reinterpret_cast<uint64_t>(wrong_);
    void* parameters[] = {&at, &words, &tag, &delay_ns, &wrong};
    auto blocks = static_cast<unsigned>(std::clamp<uint64_t>(words / kThreads, 1, kBlocks));
    driver_.check(cuLaunchKernel(kernel, blocks, 1, 1, kThreads, 1, 1, 0, stream, parameters, 0),
                  "cuLaunchKernel");
  }

  // PTX, which the driver compiles for its device: no CUDA compiler is needed. In both kernels %rd1
  // is the next word of the thread, %rd3 how many words the threads take together.
#define GPUSHARE_KERNEL(name, at_each_word)                                                     \
  ".visible .entry " name                                                                       \
  "(.param .u64 at, .param .u64 words, .param .u64 tag, "                                       \
  ".param .u64 delay, .param .u64 wrong) {\n"                                                   \
  ".reg .pred %p<4>; .reg .b32 %r<6>; .reg .b64 %rd<16>;\n"                                     \
  "ld.param.u64 %rd10, [at]; ld.param.u64 %rd11, [words]; ld.param.u64 %rd12, [tag];\n"         \
  "ld.param.u64 %rd13, [delay]; ld.param.u64 %rd14, [wrong];\n"                                 \
  "mov.u64 %rd4, %globaltimer; add.u64 %rd4, %rd4, %rd13;\n"                                    \
  "wait: mov.u64 %rd5, %globaltimer; setp.lt.u64 %p1, %rd5, %rd4; @%p1 bra wait;\n"             \
  "mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x; mov.u32 %r4, %nctaid.x;\n" \
  "mad.lo.u32 %r5, %r1, %r2, %r3; cvt.u64.u32 %rd1, %r5; mul.wide.u32 %rd3, %r2, %r4;\n"        \
  "next: setp.ge.u64 %p2, %rd1, %rd11; @%p2 bra done;\n"                                        \
  "shl.b64 %rd2, %rd1, 3; add.u64 %rd2, %rd2, %rd10;\n" at_each_word                            \
  "more: add.u64 %rd1, %rd1, %rd3; bra next;\n"                                                 \
  "done: ret;\n}\n"
  static constexpr const char* kSource =
      ".version 6.4\n.target sm_75\n.address_size 64\n" GPUSHARE_KERNEL(
          "write_tag", "st.global.u64 [%rd2], %rd12;\n")
          GPUSHARE_KERNEL("read_tag",
                          "ld.volatile.global.u64 %rd6, [%rd2];\n"
                          "setp.eq.u64 %p3, %rd6, %rd12; @%p3 bra more;\n"
                          "atom.global.sys.add.u64 %rd7, [%rd14], 1;\n"
                          "setp.ne.u64 %p3, %rd7, 0; @%p3 bra more;\n"
                          "st.global.u64 [%rd14+8], %rd2; st.global.u64 [%rd14+16], %rd6;\n"
                          "st.global.u64 [%rd14+24], %rd12;\n");
#undef GPUSHARE_KERNEL

  const Driver& driver_;
#define GPUSHARE_KERNEL_ENTRY(name, parameters) CUresult(*name) parameters = nullptr;
  GPUSHARE_KERNEL_ENTRY_POINTS(GPUSHARE_KERNEL_ENTRY)
#undef GPUSHARE_KERNEL_ENTRY
  CUfunction write_ = nullptr, read_ = nullptr;
  WrongReads* wrong_ = nullptr;
};

}  // namespace gpushare::cuda
