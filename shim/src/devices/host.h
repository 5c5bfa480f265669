#pragma once

#include <sys/types.h>

#include "../device.h"

namespace gpushare {

// Private anonymous memory. Every stream is synchronous: whatever was issued has been done. Frames
// are the kernel's; what is unmapped has none, and gets one when it is touched.
// Not memfd: a forked child would write through it into its parent's tensors.
class HostDevice final : public Device {
 public:
  char* reserve(size_t bytes, size_t page_bytes) override;
  void unmap(char* address) override;
  // To a temporary file without a name, in $TMPDIR or /tmp.
  bool copy_out(char* address, size_t bytes) override;
  void take_away(char* address, size_t bytes) override;
  bool bring_back(char* address, size_t bytes) override;
  void forget(char* address, size_t bytes) override;

 private:
  off_t offset(const char* address) const { return address - base_; }
  char* base_ = nullptr;
  size_t page_bytes_ = 0;
  int file_ = -1;
};

}  // namespace gpushare
