// What is left of the machine's memory, and of what a control group may have.
#include "../src/devices/host_memory.h"

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "check.h"

using namespace gpushare;

namespace {

constexpr uint64_t kMiB = 1 << 20;

class Machine {
 public:
  Machine() {
    char name[] = "/tmp/host_memory_XXXXXX";
    CHECK(mkdtemp(name));
    root_ = name;
  }
  ~Machine() { std::filesystem::remove_all(root_); }
  Machine& has(const std::string& path, const std::string& text) {
    std::filesystem::path file = root_ + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
    return *this;
  }
  Machine& has_mib(const std::string& path, uint64_t mib) {
    return has(path, std::to_string(mib * kMiB) + "\n");
  }
  uint64_t left() const { return host_memory_left(root_); }

 private:
  std::string root_;
};

constexpr char kMeminfo[] = "MemTotal:  4194304 kB\nMemAvailable:    1048576 kB\nBuffers: 1 kB\n";

void the_machine_is_asked() {
  CHECK(Machine().left() == UINT64_MAX);
  CHECK(Machine().has("/proc/meminfo", kMeminfo).left() == 1024 * kMiB);
  uint64_t here = host_memory_left();
  CHECK(here > 0 && here < UINT64_MAX);
}

void a_group_may_have_less() {
  Machine m;
  m.has("/proc/meminfo", kMeminfo).has("/proc/self/cgroup", "0::/a/b\n");
  CHECK(m.left() == 1024 * kMiB);
  std::string a = "/sys/fs/cgroup/a/", b = "/sys/fs/cgroup/a/b/";
  m.has(b + "memory.max", "max\n").has_mib(b + "memory.current", 500);
  CHECK(m.left() == 1024 * kMiB);
  m.has_mib(a + "memory.max", 600).has_mib(a + "memory.current", 500);
  CHECK(m.left() == 100 * kMiB);
  m.has(a + "memory.stat", "anon 7\ninactive_file 52428800\n");
  CHECK(m.left() == 150 * kMiB);
  m.has_mib(b + "memory.max", 400);  // it has more already
  CHECK(m.left() == 0);
  m.has_mib("/sys/fs/cgroup/memory.max", 1);
  CHECK(m.left() == 0);
}

void so_may_one_of_version_1() {
  Machine m;
  m.has("/proc/meminfo", kMeminfo)
      .has("/proc/self/cgroup", "9:cpu,cpuacct:/x\n4:memory:/\n1:name=systemd:/y\nodd\n");
  std::string top = "/sys/fs/cgroup/memory/";
  m.has_mib(top + "memory.limit_in_bytes", 300).has_mib(top + "memory.usage_in_bytes", 100);
  CHECK(m.left() == 200 * kMiB);
  m.has(top + "memory.stat", "total_inactive_file 1048576\n");
  CHECK(m.left() == 201 * kMiB);
}

}  // namespace

int main() {
  the_machine_is_asked();
  a_group_may_have_less();
  so_may_one_of_version_1();
  puts("host memory: ok");
}
