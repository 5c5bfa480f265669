#pragma once

#include <cstdint>

namespace gpushare {

class Runtime;

// Registers the calling thread as working for the account, so that its CPU time counts for it.
void sampler_enter(uint32_t account);
void sampler_leave();
// A thread without Python: it looks at doors when a start is planned, and every 10 ms at telemetry,
// which iterations really advance (at least 5 ms of CPU in the slice; on a GPU, those that wait for
// nothing here), wedges, and the end of the parent.
void sampler_start(Runtime* runtime, int32_t parent_pid);

}  // namespace gpushare
