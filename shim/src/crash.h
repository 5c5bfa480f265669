// Which job's thread crashes: told in the telemetry, which outlives the process.
#pragma once

#include "telemetry.h"

namespace gpushare {

// From now on a fatal signal leaves its number and the account of the thread that it hit: 0 where
// that is no job's. A thread whose stack is full can't tell.
void watch_crashes(Telemetry* telemetry);

}  // namespace gpushare
