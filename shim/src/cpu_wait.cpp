#include "cpu_wait.h"

#include <cinttypes>
#include <cstdio>
#include <memory>

namespace gpushare {

uint64_t waited_for_processor_ns() {
  std::unique_ptr<FILE, int (*)(FILE*)> file(fopen("/proc/thread-self/schedstat", "re"), fclose);
  uint64_t waited = 0;
  bool read = file && fscanf(file.get(), "%*u %" SCNu64, &waited) == 1;
  return read ? waited : 0;
}

}  // namespace gpushare
