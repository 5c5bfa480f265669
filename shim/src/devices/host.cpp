#include "host.h"

#include <sys/mman.h>

namespace gpushare {

char* HostDevice::reserve(size_t bytes, size_t alignment) {
  void* raw = mmap(nullptr, bytes + alignment, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (raw == MAP_FAILED) return nullptr;
  auto start = (reinterpret_cast<uintptr_t>(raw) + alignment - 1) & ~(alignment - 1);
  char* base = reinterpret_cast<char*>(start);
  // A pool page is charged whole, so one fault may bring it in whole. A kernel without transparent
  // huge pages refuses, and serves 4 KiB at a time.
  (void)madvise(base, bytes, MADV_HUGEPAGE);
  return base;
}

void HostDevice::drop(char* address, size_t bytes) { (void)madvise(address, bytes, MADV_DONTNEED); }

}  // namespace gpushare
