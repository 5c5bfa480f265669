// Regions of compiled code per job. Torch's compiler keeps the compiled forms of a function, and
// their count against the recompile limit, with the function's code, which jobs share; those of
// one region don't see those of another (`torch.compile(..., isolate_recompiles=True)`).
#include <cstdint>

#include "../include/gpushare.h"
#include "switches.h"

namespace {
constexpr int64_t kFirstRegion = int64_t{1} << 32;  // torch numbers its own from 0
thread_local int64_t own_region __attribute__((tls_model("initial-exec"))) = -1;
}  // namespace

// Torch has one number for all threads; what sets it is replaced by this (compiler_memory.py).
extern "C" int64_t gs_compile_region(int64_t region) {
  int64_t before = own_region;
  own_region = region;
  return before;
}

// torch/csrc/dynamo/eval_frame.h
extern "C" GS_EXPORT int64_t get_current_isolate_recompiles_id() {
  if (own_region >= 0 || !gpushare::switch_account) return own_region;
  return kFirstRegion + gpushare::switch_account;
}
