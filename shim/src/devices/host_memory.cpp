#include "host_memory.h"

#include <algorithm>
#include <fstream>
#include <sstream>

namespace gpushare {

namespace {

constexpr uint64_t kUnknown = UINT64_MAX;

// The number in the file; kUnknown if there is none ("max").
uint64_t number_in(const std::string& path) {
  std::ifstream file(path);
  uint64_t value = 0;
  return file >> value ? value : kUnknown;
}

// Of lines "name value"; nought if it is not there.
uint64_t number_after(const std::string& path, const std::string& name, uint64_t otherwise) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string first;
    if (uint64_t value = 0; words >> first >> value && first == name) return value;
  }
  return otherwise;
}

struct Version {
  const char *mount, *limit, *used, *cache;
};
constexpr Version kTwo = {"/sys/fs/cgroup", "memory.max", "memory.current", "inactive_file"};
constexpr Version kOne = {"/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes",
                          "total_inactive_file"};

// Pages of files that nobody has used of late are given up first.
uint64_t left_in(const std::string& folder, const Version& v) {
  uint64_t limit = number_in(folder + v.limit), used = number_in(folder + v.used);
  if (limit == kUnknown || used == kUnknown) return kUnknown;
  used -= std::min(used, number_after(folder + "memory.stat", v.cache, 0));
  return limit - std::min(limit, used);
}

// Of the group and all that it is part of.
uint64_t left_in_group(const std::string& mount, std::string group, const Version& v) {
  uint64_t least = kUnknown;
  for (;;) {
    least = std::min(least, left_in(mount + group + (group.ends_with('/') ? "" : "/"), v));
    if (group.size() <= 1) return least;
    group.resize(std::max<size_t>(group.rfind('/'), 1));
  }
}

bool has_memory(const std::string& controllers) {
  std::istringstream names(controllers);
  for (std::string name; std::getline(names, name, ',');)
    if (name == "memory") return true;
  return false;
}

}  // namespace

uint64_t host_memory_left(const std::string& root) {
  constexpr uint64_t kKiB = 1024;
  uint64_t available = number_after(root + "/proc/meminfo", "MemAvailable:", kUnknown);
  uint64_t least = available == kUnknown ? kUnknown : available * kKiB;
  std::ifstream groups(root + "/proc/self/cgroup");  // lines "number:controllers:group"
  for (std::string line; std::getline(groups, line);) {
    size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos || line[second + 1] != '/') continue;
    std::string controllers = line.substr(first + 1, second - first - 1);
    if (!controllers.empty() && !has_memory(controllers)) continue;
    const Version& v = controllers.empty() ? kTwo : kOne;
    least = std::min(least, left_in_group(root + v.mount, line.substr(second + 1), v));
  }
  return least;
}

}  // namespace gpushare
