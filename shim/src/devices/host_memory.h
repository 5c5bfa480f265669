// How much memory the machine has left for this process. The kernel promises more than it has, and
// kills who touches what is not there.
#pragma once

#include <cstdint>
#include <string>

namespace gpushare {

// Bytes that could be touched without pushing anything out that is in use: of the machine
// (MemAvailable), and of each control group with a limit that the process is in (cgroups, version 1
// and 2). UINT64_MAX if nobody tells. `root`: where /proc and /sys lie.
uint64_t host_memory_left(const std::string& root = "");

}  // namespace gpushare
