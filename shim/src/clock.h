#pragma once

#include <time.h>

#include <cstdint>

namespace gpushare {

// The time of a thread that simulates (simulation.h); null: the machine's.
extern constinit thread_local const uint64_t* virtual_now
    __attribute__((tls_model("initial-exec")));

inline uint64_t now_ns() {
  if (virtual_now) return *virtual_now;
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1000000000u + static_cast<uint64_t>(t.tv_nsec);
}

// As of the last tick of the kernel, some milliseconds ago at most: a tenth of the price, and never
// later than now_ns().
inline uint64_t coarse_now_ns() {
  if (virtual_now) return *virtual_now;
  timespec t;
  clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1000000000u + static_cast<uint64_t>(t.tv_nsec);
}

}  // namespace gpushare
