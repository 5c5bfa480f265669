// Streams of jobs on a GPU, beside the one that each gets when it begins: those that a script
// asks torch's pool for. Torch's own pool has 32 of a priority for the whole process, so two jobs
// would come to wait for each other there. A job has as many, given out in turn, as it has alone.
// They are never destroyed: torch keeps events, pinned memory and handles of libraries by stream.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "device.h"

namespace gpushare {

class SideStreams {
 public:
  // Of torch's pool, c10/cuda/CUDAStream.cpp: streams of a priority, and the most urgent one.
  static constexpr size_t kOfAPriority = 32;
  static constexpr int kMostUrgent = -3;

  explicit SideStreams(Device* device) : device_(device) {}

  // The next one, and whether it is new. Throws DeviceFailure.
  std::pair<Stream, bool> next(uint32_t account, int priority);

 private:
  struct Turn {
    std::vector<Stream> streams;
    size_t next = 0;
  };
  Device* device_;
  std::mutex mutex_;
  std::map<std::pair<uint32_t, int>, Turn> turns_;  // by account and priority
};

}  // namespace gpushare
