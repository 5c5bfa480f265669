// Whose switches (default dtype, deterministic algorithms and the like) the calling thread sees.
#pragma once

#include <cstdint>

#include "../include/gpushare.h"

namespace gpushare {

// The last account is of no job: the check at start tries out there whether switches are split.
constexpr uint32_t kSwitchAccounts = GS_MAX_ACCOUNTS + 1;

// An account, 0 for the process's own switches. Beside `thread_state`, since torch's worker threads
// have it too, which are no job's otherwise. It survives a fork: a child of a job has its values.
extern thread_local uint32_t switch_account __attribute__((tls_model("initial-exec")));

}  // namespace gpushare
