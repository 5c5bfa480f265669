// The whole fake: a machine with a driver and its devices.
#pragma once

#include <mutex>

#include "contexts.h"
#include "entry_points.h"
#include "events.h"
#include "hazards.h"
#include "kernels.h"

namespace gpushare::fake_cuda {

struct Machine {
  explicit Machine(uint64_t seed);

  // Issues what touches memory, and waits for nothing.
  CUresult issue(CUstream stream, Operation op);
  // A copy on the legacy stream that the CPU waits for.
  CUresult copy_now(Operation op);
  CUresult query(CUstream stream);
  CUresult synchronize(CUstream stream);
  CUresult synchronize_all();
  CUresult destroy(CUstream stream);

  Report report;
  Faults faults;
  Contexts contexts;
  Memory memory;
  Streams streams;
  Captures captures;
  Events events;
  Hazards hazards;

 private:
  void guard(CUdeviceptr address, size_t bytes, const char* what);
};

// The machine, while the lock is held.
class Locked {
 public:
  Locked();
  Machine* operator->() const;
  Machine& operator*() const;
  ThreadState& thread() const;  // the calling one's
  void replace(uint64_t seed);

 private:
  std::unique_lock<std::mutex> lock_;
};

}  // namespace gpushare::fake_cuda
