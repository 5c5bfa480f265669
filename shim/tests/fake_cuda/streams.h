// Streams: queues of operations, the scheduler that runs them late, and the device's clock.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <random>
#include <vector>

#include "operation.h"

namespace gpushare::fake_cuda {

constexpr uint64_t kLegacy = 0;

struct StreamState {
  bool blocking = true;  // with the legacy stream
  bool destroyed = false;
  bool held = false;
  uint64_t capture = 0;  // the capture that it is part of
  uint64_t issued = 0, done = 0;
  uint64_t end = 0;        // of the last operation that was issued, by the device's clock
  uint64_t ideal_end = 0;  // the same, by the ideal one
  std::deque<Operation> queue{};
};

class Streams {
 public:
  using Execute = std::function<void(uint64_t stream, const Operation&)>;

  Streams(Report& report, uint64_t seed, Execute execute);

  CUresult create(CUstream* stream, unsigned flags);
  CUresult destroy(CUstream stream);
  // Null, with a misuse, if there is no such stream.
  StreamState* find(CUstream stream, uint64_t* id);
  StreamState& at(uint64_t id) { return all_.at(id); }
  bool any_blocking(const std::function<bool(const StreamState&)>& is) const;
  std::map<uint64_t, StreamState>& all() { return all_; }

  // The position after the operation.
  Position issue(uint64_t id, Operation op);
  bool passed(const Position& position) const;
  // What has to pass before the stream's work is over: its own, and by the legacy stream's rules.
  std::vector<Position> work_of(uint64_t id) const;
  std::vector<Position> all_work() const;

  size_t run(size_t operations);
  // Runs until all have passed. False: they never will.
  bool run_until(const std::vector<Position>& positions, fake_cuda_waits& waits);
  // An operation that is still to run and touches the range; null: none is.
  const Operation* pending(CUdeviceptr address, size_t bytes) const;

  uint64_t issue_time = 0;
  bool reuse_handles = false;
  uint64_t device_time() const { return device_time_; }
  uint64_t ideal_time() const { return ideal_time_; }

 private:
  Position last(uint64_t id) const;
  bool all_passed(const std::vector<Position>& positions) const;
  std::vector<Position> legacy_rules(uint64_t id) const;
  bool can_run(const StreamState& stream) const;
  bool step();

  Report& report_;
  Execute execute_;
  std::mt19937_64 random_;
  // Numbers are never used again, so a stale handle is always found out, unless a test wants them
  // reused; and events and streams have different ones.
  static constexpr uint64_t kFirst = 0x53000010, kStep = 0x10;
  uint64_t next_ = kFirst;
  std::vector<uint64_t> unused_handles_;
  std::map<uint64_t, uint64_t> renamed_;  // handle, number of the stream that has it now
  std::map<uint64_t, StreamState> all_;   // destroyed ones too, while they have work
  uint64_t device_time_ = 0, ideal_time_ = 0;
};

}  // namespace gpushare::fake_cuda
