// Which job's thread crashes, or ends the process: told in the telemetry, which outlives the
// process.
#pragma once

#include "telemetry.h"

namespace gpushare {

// From now on a fatal signal leaves its number and the account of the thread that it hit: 0 where
// that is no job's. A thread whose stack is full can't tell.
void watch_crashes(Telemetry* telemetry);
// A job's thread that calls the C library's exit() leaves 256 and the exit status, and ends the
// process at once. To be called when torch is loaded.
void watch_exits();

}  // namespace gpushare
