#include "allocation_log.h"

#include <errno.h>
#include <unistd.h>

#include "clock.h"

namespace gpushare {

void AllocationLog::start(int fd) {
  std::lock_guard lock(mutex_);
  fd_ = fd;
  records_.reserve(kBuffered);
  on_ = true;
}

void AllocationLog::add(Logged what, uint32_t account, uint64_t stream, uint64_t iteration,
                        const void* address, uint64_t bytes, Kind kind) {
  std::lock_guard lock(mutex_);
  if (!on()) return;
  records_.push_back({now_ns(), reinterpret_cast<uint64_t>(address), bytes, stream,
                      static_cast<uint32_t>(iteration), static_cast<uint8_t>(account), what, kind});
  if (records_.size() == kBuffered) write_out();
}

void AllocationLog::flush() {
  std::lock_guard lock(mutex_);
  if (on()) write_out();
}

void AllocationLog::write_out() {
  auto* from = reinterpret_cast<const char*>(records_.data());
  size_t left = records_.size() * sizeof(LogRecord);
  while (left > 0) {
    ssize_t written = write(fd_, from, left);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {  // half a record at the end is the reader's to drop
      error_ = written < 0 ? errno : EIO;
      on_ = false;
      break;
    }
    from += written;
    left -= static_cast<size_t>(written);
  }
  records_.clear();
}

}  // namespace gpushare
