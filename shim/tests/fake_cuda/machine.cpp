#include "machine.h"

#include <memory>

namespace gpushare::fake_cuda {

Machine::Machine(uint64_t seed)
    : contexts(report),
      memory(report, seed,
             [this](CUdeviceptr address, size_t bytes, const char* what) {
               guard(address, bytes, what);
             }),
      streams(
          report, seed,
          [this](uint64_t stream, const Operation& op) { execute(memory, report, stream, op); }),
      captures(report, streams),
      events(report, streams, captures) {}

void Machine::guard(CUdeviceptr address, size_t bytes, const char* what) {
  const Operation* op = streams.pending(address, bytes);
  if (!op) return;
  report.misuse(CUDA_ERROR_ILLEGAL_ADDRESS, hex(address) + " + " + std::to_string(bytes) + " is " +
                                                what + " under pending work on " +
                                                hex(op->address) + " + " +
                                                std::to_string(op->bytes));
}

CUresult Machine::issue(CUstream stream, Operation op) {
  uint64_t id;
  if (!streams.find(stream, &id)) return CUDA_ERROR_INVALID_HANDLE;
  if (auto wrong = captures.may_issue(id)) return wrong;
  // It would be luck if the memory were there by the time that the operation runs.
  if (!may_touch(memory, report, op, "is issued")) return CUDA_ERROR_INVALID_VALUE;
  if (streams.at(id).capture) {
    ++report.counters.captured;
    return CUDA_SUCCESS;
  }
  auto places = memory.places(op.address, op.bytes);
  bool writes = op.writes();
  op.bytes_ready = hazards.ready(places, writes);
  hazards.accessed(places, writes, streams.issue(id, std::move(op)).ideal);
  return CUDA_SUCCESS;
}

CUresult Machine::copy_now(Operation op) {
  if (auto wrong = issue(nullptr, std::move(op))) return wrong;
  return streams.run_until(streams.work_of(kLegacy), report.counters.copy_waits)
             ? CUDA_SUCCESS
             : CUDA_ERROR_TIMEOUT;
}

CUresult Machine::query(CUstream stream) {
  uint64_t id;
  if (!streams.find(stream, &id)) return CUDA_ERROR_INVALID_HANDLE;
  if (auto wrong = captures.may_ask(id)) return wrong;
  for (auto& position : streams.work_of(id))
    if (!streams.passed(position)) return CUDA_ERROR_NOT_READY;
  return CUDA_SUCCESS;
}

CUresult Machine::synchronize(CUstream stream) {
  uint64_t id;
  if (!streams.find(stream, &id)) return CUDA_ERROR_INVALID_HANDLE;
  if (auto wrong = captures.may_ask(id)) return wrong;
  return streams.run_until(streams.work_of(id), report.counters.stream_waits) ? CUDA_SUCCESS
                                                                              : CUDA_ERROR_TIMEOUT;
}

CUresult Machine::synchronize_all() {
  return streams.run_until(streams.all_work(), report.counters.context_waits) ? CUDA_SUCCESS
                                                                              : CUDA_ERROR_TIMEOUT;
}

CUresult Machine::destroy(CUstream stream) {
  uint64_t id;
  if (!streams.find(stream, &id)) return CUDA_ERROR_INVALID_HANDLE;
  captures.stream_destroyed(id);
  return streams.destroy(stream);
}

namespace {

std::mutex mutex;
uint64_t machines = 1;

// Never destroyed: threads may call the driver while the process ends.
std::unique_ptr<Machine>& machine() {
  static auto* the = new std::unique_ptr<Machine>(new Machine(0));
  return *the;
}

}  // namespace

Locked::Locked() : lock_(mutex) {}

Machine* Locked::operator->() const { return machine().get(); }

Machine& Locked::operator*() const { return *machine(); }

ThreadState& Locked::thread() const {
  static thread_local ThreadState state;
  if (state.machine != machines) state = ThreadState{machines};
  return state;
}

void Locked::replace(uint64_t seed) {
  ++machines;
  machine() = std::make_unique<Machine>(seed);
}

}  // namespace gpushare::fake_cuda
