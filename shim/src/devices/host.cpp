#include "host.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

namespace gpushare {

char* HostDevice::reserve(size_t bytes, size_t page_bytes) {
  page_bytes_ = page_bytes;
  void* raw = mmap(nullptr, bytes + page_bytes, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (raw == MAP_FAILED) return nullptr;
  auto start = (reinterpret_cast<uintptr_t>(raw) + page_bytes - 1) & ~(page_bytes - 1);
  char* base = base_ = reinterpret_cast<char*>(start);
  // A pool page is charged whole, so one fault may bring it in whole. A kernel without transparent
  // huge pages refuses, and serves 4 KiB at a time.
  (void)madvise(base, bytes, MADV_HUGEPAGE);
  return base;
}

void HostDevice::unmap(char* address) { (void)madvise(address, page_bytes_, MADV_DONTNEED); }

namespace {

int open_temporary() {
  const char* chosen = getenv("TMPDIR");
  std::string folder = chosen && *chosen ? chosen : "/tmp";
  int file = open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (file >= 0) return file;
  std::string name = folder + "/gpushare-XXXXXX";  // a file system that has no nameless files
  file = mkostemp(name.data(), O_CLOEXEC);
  if (file >= 0) unlink(name.c_str());
  return file;
}

using Transfer = ssize_t (*)(int, char*, size_t, off_t);

bool transfer(Transfer some, int file, char* address, size_t bytes, off_t at) {
  for (size_t done = 0; done < bytes;) {
    ssize_t n = some(file, address + done, bytes - done, at + static_cast<off_t>(done));
    if (n <= 0) return false;
    done += static_cast<size_t>(n);
  }
  return true;
}

}  // namespace

bool HostDevice::copy_out(char* address, size_t bytes) {
  if (file_ < 0 && (file_ = open_temporary()) < 0) return false;
  auto write = [](int f, char* p, size_t n, off_t at) { return pwrite(f, p, n, at); };
  return transfer(write, file_, address, bytes, offset(address));
}

void HostDevice::take_away(char* address, size_t bytes) {
  (void)madvise(address, bytes, MADV_DONTNEED);
  (void)mprotect(address, bytes, PROT_NONE);
}

bool HostDevice::bring_back(char* address, size_t bytes) {
  if (mprotect(address, bytes, PROT_READ | PROT_WRITE) != 0) return false;
  auto read = [](int f, char* p, size_t n, off_t at) { return pread(f, p, n, at); };
  if (!transfer(read, file_, address, bytes, offset(address))) return false;
  forget(address, bytes);
  return true;
}

void HostDevice::forget(char* address, size_t bytes) {
  (void)mprotect(address, bytes, PROT_READ | PROT_WRITE);
  // The file gives its room back; a file system that can't keeps it until the host ends.
  (void)fallocate(file_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset(address),
                  static_cast<off_t>(bytes));
}

}  // namespace gpushare
