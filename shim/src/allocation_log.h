// Every allocation and free of a run, in order, written to a file for replay. The layout of a
// record is the same as in gpushare/telemetry/allocation_log.py.
#pragma once

#include <cstdint>

#include "record_file.h"

namespace gpushare {

enum class Logged : uint8_t { kAllocated = 1, kFreed, kIterationOpened, kIterationClosed };
// Of an allocation: as the iteration showed, or kPassing: not expected to outlive it.
enum class Kind : uint8_t { kUnknown, kPersistent, kActivation, kTemporary, kPassing };

struct LogRecord {
  uint64_t time_ns, address, bytes, stream;
  uint32_t iteration;
  uint8_t account;
  Logged what;
  Kind kind;
  uint8_t unused = 0;
};
static_assert(sizeof(LogRecord) == 40);

class AllocationLog {
 public:
  void start(int fd) { file_.start(fd); }
  bool on() const { return file_.on(); }
  // A block is logged after it was taken and before it is given back, so that an address never
  // has two owners in the log. `bytes` as asked; 0 where they mean nothing.
  void add(Logged what, uint32_t account, uint64_t stream, uint64_t iteration, const void* address,
           uint64_t bytes, Kind kind = Kind::kUnknown);
  void flush() { file_.flush(); }
  int error() const { return file_.error(); }

 private:
  RecordFile<LogRecord> file_;
};

}  // namespace gpushare
