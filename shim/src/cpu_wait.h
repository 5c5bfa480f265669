#pragma once

#include <cstdint>

namespace gpushare {

// For how long the calling thread, since it began, could have run and no processor was free (the
// kernel's sched-stats); 0 where the kernel does not count it.
uint64_t waited_for_processor_ns();

}  // namespace gpushare
