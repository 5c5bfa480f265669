// Records of one kind, written to a file in the order in which they come.
#pragma once

#include <errno.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <mutex>
#include <vector>

namespace gpushare {

template <class Record>
class RecordFile {
 public:
  // Writes to the descriptor from now on.
  void start(int fd) {
    std::lock_guard lock(mutex_);
    fd_ = fd;
    records_.reserve(kBuffered);
    on_ = true;
  }
  bool on() const { return on_.load(std::memory_order_relaxed); }
  // `make` runs under the lock, so that times are in order.
  template <class Make>
  void add(Make make) {
    std::lock_guard lock(mutex_);
    if (!on()) return;
    records_.push_back(make());
    if (records_.size() == kBuffered) write_out();
  }
  void flush() {
    std::lock_guard lock(mutex_);
    if (on()) write_out();
  }
  // errno of the write that ended the file; 0 while all is well.
  int error() const { return error_.load(std::memory_order_relaxed); }

 private:
  static constexpr size_t kBuffered = 4096;

  void write_out() {
    auto* from = reinterpret_cast<const char*>(records_.data());
    size_t left = records_.size() * sizeof(Record);
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

  std::mutex mutex_;
  std::vector<Record> records_;
  int fd_ = -1;
  std::atomic<bool> on_{false};
  std::atomic<int> error_{0};
};

}  // namespace gpushare
