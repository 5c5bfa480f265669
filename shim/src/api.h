// What the parts of the C API share.
#pragma once

#include <string>

#include "../include/gpushare.h"
#include "runtime.h"

namespace gpushare {

// Null before the start, and in a forked child.
Runtime* active();
// Keeps the text for gs_last_error(); returns -1.
int fail(const std::string& text);

inline bool is_account(gs_account a) { return a >= 0 && a < GS_MAX_ACCOUNTS; }
inline bool is_job(gs_account a) { return a > 0 && a < GS_MAX_ACCOUNTS; }

}  // namespace gpushare
