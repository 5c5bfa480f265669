// How far a job has come, for who plans: what gs_progress_get tells.
#pragma once

#include "../include/gpushare.h"
#include "account.h"
#include "telemetry.h"

namespace gpushare {

void tell_progress(const Account& a, const Telemetry& t, uint64_t page_bytes, uint64_t now_ns,
                   uint64_t out[GS_PROGRESS_FIGURES]);

}  // namespace gpushare
