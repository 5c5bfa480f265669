// One thing that the device does on a stream, and when that is over.
#pragma once

#include <cstdint>
#include <vector>

#include "report.h"

namespace gpushare::fake_cuda {

// All work of a stream up to its nth operation; 0 operations are nothing and have always passed.
struct Position {
  uint64_t stream = 0;
  uint64_t operations = 0;
  uint64_t time = 0;   // of the device's clock, when it ends
  uint64_t ideal = 0;  // the same, if nobody waited for more than the bytes need
};

struct Operation {
  enum Kind { kMark, kWrite, kRead, kToHost, kToDevice };
  Kind kind = kMark;  // a mark does nothing but pass
  CUdeviceptr address = 0;
  size_t bytes = 0;
  uint64_t tag = 0;  // kWrite, kRead: the 8 bytes at each multiple of 8
  // kToHost, kToDevice: the other end. kRead: where a wrong one is counted and told, or null.
  void* host = nullptr;
  uint64_t duration = 0;
  std::vector<Position> after{};  // besides what was issued on its stream before
  bool for_memory = false;        // a wait that an allocator makes
  uint64_t bytes_ready = 0;       // when earlier uses of the bytes end, ideally

  bool touches(CUdeviceptr from, size_t size) const {
    return bytes && address < from + size && from < address + bytes;
  }
  bool writes() const { return kind == kWrite || kind == kToDevice; }
};

}  // namespace gpushare::fake_cuda
