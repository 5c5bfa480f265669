// The driver's entry points by number and by name, and which rules hold for which.
#pragma once

#include <cstdint>
#include <map>

#include "report.h"

namespace gpushare::fake_cuda {

enum class EntryPoint : unsigned {
#define NUMBER(name, parameters) name,
  GPUSHARE_CUDA_ENTRY_POINTS(NUMBER)
#undef NUMBER
      kCount
};

constexpr unsigned kEntryPoints = static_cast<unsigned>(EntryPoint::kCount);
static_assert(kEntryPoints <= FAKE_CUDA_MAX_ENTRY_POINTS);

const char* const* entry_point_names();           // ends with a null
bool find_entry_point(const char*, EntryPoint*);  // false: there is none of that name

bool works_before_init(EntryPoint);
// Those for which the driver's documentation lists CUDA_ERROR_INVALID_CONTEXT.
bool needs_context(EntryPoint);
// Those that a capture may forbid, see cuThreadExchangeStreamCaptureMode.
bool unsafe_while_capturing(EntryPoint);

// Failures that a test has ordered.
class Faults {
 public:
  void order(EntryPoint, uint64_t nth, CUresult);
  // To be called once per call; false: the call is to go on.
  bool take(EntryPoint, CUresult*);

 private:
  uint64_t calls_[kEntryPoints] = {};
  std::map<uint64_t, CUresult> ordered_[kEntryPoints];  // by the number of the call
};

}  // namespace gpushare::fake_cuda
