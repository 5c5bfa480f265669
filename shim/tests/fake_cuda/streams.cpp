#include "streams.h"

#include <algorithm>

namespace gpushare::fake_cuda {

Streams::Streams(Report& report, uint64_t seed, Execute execute)
    : report_(report), execute_(std::move(execute)), random_(seed) {
  all_[kLegacy];
}

CUresult Streams::create(CUstream* stream, unsigned flags) {
  if (!stream || flags > CU_STREAM_NON_BLOCKING)
    return report_.misuse(CUDA_ERROR_INVALID_VALUE,
                          "cuStreamCreate: unknown flags " + std::to_string(flags));
  uint64_t handle = next_;
  if (reuse_handles && !unused_handles_.empty()) {
    handle = unused_handles_.back();
    unused_handles_.pop_back();
    renamed_[handle] = next_;
  }
  all_[next_].blocking = flags != CU_STREAM_NON_BLOCKING;
  *stream = reinterpret_cast<CUstream>(handle);
  next_ += kStep;
  ++report_.counters.live_streams;
  return CUDA_SUCCESS;
}

CUresult Streams::destroy(CUstream stream) {
  uint64_t id;
  StreamState* state = find(stream, &id);
  if (!state) return CUDA_ERROR_INVALID_HANDLE;
  if (id == kLegacy)
    return report_.misuse(CUDA_ERROR_INVALID_HANDLE, "the legacy stream can't be destroyed");
  state->destroyed = true;
  unused_handles_.push_back(reinterpret_cast<uint64_t>(stream));
  --report_.counters.live_streams;
  if (state->queue.empty()) all_.erase(id);
  return CUDA_SUCCESS;
}

StreamState* Streams::find(CUstream stream, uint64_t* id) {
  *id = reinterpret_cast<uint64_t>(stream);
  if (*id == 1) *id = kLegacy;  // CU_STREAM_LEGACY
  if (auto other = renamed_.find(*id); other != renamed_.end()) *id = other->second;
  auto found = all_.find(*id);
  if (found != all_.end() && !found->second.destroyed) return &found->second;
  bool was = *id >= kFirst && *id < next_ && (*id - kFirst) % kStep == 0;
  report_.misuse(CUDA_ERROR_INVALID_HANDLE,
                 hex(*id) + (was ? " is a destroyed stream" : " is no stream"));
  return nullptr;
}

bool Streams::any_blocking(const std::function<bool(const StreamState&)>& is) const {
  return std::any_of(all_.begin(), all_.end(), [&](auto& entry) {
    return entry.first != kLegacy && entry.second.blocking && is(entry.second);
  });
}

Position Streams::last(uint64_t id) const {
  auto& stream = all_.at(id);
  return {id, stream.issued, stream.end, stream.ideal_end};
}

// The legacy stream's work begins after all earlier work of blocking streams, and their later work
// begins after it.
std::vector<Position> Streams::legacy_rules(uint64_t id) const {
  std::vector<Position> after;
  if (!all_.at(id).blocking) return after;
  if (id != kLegacy) return {last(kLegacy)};
  for (auto& [other, stream] : all_)
    if (other != kLegacy && stream.blocking) after.push_back(last(other));
  return after;
}

Position Streams::issue(uint64_t id, Operation op) {
  StreamState& stream = all_.at(id);
  for (auto& position : legacy_rules(id)) op.after.push_back(position);
  uint64_t start = std::max(stream.end, issue_time);
  for (auto& position : op.after) start = std::max(start, position.time);
  stream.end = start + op.duration;
  device_time_ = std::max(device_time_, stream.end);
  uint64_t ideal = std::max({stream.ideal_end, issue_time, op.bytes_ready});
  for (auto& position : op.after)
    if (!op.for_memory) ideal = std::max(ideal, position.ideal);
  stream.ideal_end = ideal + op.duration;
  ideal_time_ = std::max(ideal_time_, stream.ideal_end);
  stream.queue.push_back(std::move(op));
  ++stream.issued;
  ++report_.counters.pending;
  return last(id);
}

bool Streams::passed(const Position& position) const {
  auto found = all_.find(position.stream);
  // A destroyed stream is forgotten when it has nothing left to do.
  return found == all_.end() || found->second.done >= position.operations;
}

bool Streams::all_passed(const std::vector<Position>& positions) const {
  return std::all_of(positions.begin(), positions.end(), [&](auto& p) { return passed(p); });
}

std::vector<Position> Streams::work_of(uint64_t id) const {
  std::vector<Position> work;
  if (id == kLegacy) work = legacy_rules(kLegacy);
  work.push_back(last(id));
  return work;
}

std::vector<Position> Streams::all_work() const {
  std::vector<Position> work;
  for (auto& [id, stream] : all_) work.push_back(last(id));
  return work;
}

bool Streams::can_run(const StreamState& stream) const {
  return !stream.queue.empty() && !stream.held && all_passed(stream.queue.front().after);
}

bool Streams::step() {
  std::vector<uint64_t> ready;
  for (auto& [id, stream] : all_)
    if (can_run(stream)) ready.push_back(id);
  if (ready.empty()) return false;
  uint64_t id = ready[random_() % ready.size()];
  StreamState& stream = all_.at(id);
  execute_(id, stream.queue.front());
  stream.queue.pop_front();
  ++stream.done;
  --report_.counters.pending;
  if (stream.destroyed && stream.queue.empty()) all_.erase(id);
  return true;
}

size_t Streams::run(size_t operations) {
  size_t ran = 0;
  while (ran < operations && step()) ++ran;
  return ran;
}

bool Streams::run_until(const std::vector<Position>& positions, fake_cuda_waits& waits) {
  ++waits.calls;
  if (all_passed(positions)) return true;
  ++waits.ran;
  while (!all_passed(positions)) {
    if (step()) continue;
    ++report_.counters.deadlocks;
    report_.misuse(CUDA_ERROR_TIMEOUT, "deadlock: the CPU waits, and no stream can go on");
    return false;
  }
  return true;
}

const Operation* Streams::pending(CUdeviceptr address, size_t bytes) const {
  for (auto& [id, stream] : all_)
    for (auto& op : stream.queue)
      if (op.touches(address, bytes)) return &op;
  return nullptr;
}

}  // namespace gpushare::fake_cuda
