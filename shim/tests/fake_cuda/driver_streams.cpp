// Entry points: streams, captures and events.
#include "call.h"
#include "driver.h"

using namespace gpushare::fake_cuda;

namespace gpushare::cuda {

namespace {

// work(the stream's number), unless there is no such stream.
template <class Work>
CUresult on_stream(Machine& machine, CUstream stream, Work work) {
  uint64_t id;
  return machine.streams.find(stream, &id) ? work(id) : CUDA_ERROR_INVALID_HANDLE;
}

}  // namespace

CUresult cuStreamCreate(CUstream* stream, unsigned flags) {
  return call(EntryPoint::cuStreamCreate, [&](Machine& machine, ThreadState&) {
    return machine.streams.create(stream, flags);
  });
}

// Priorities change nothing here.
CUresult cuStreamCreateWithPriority(CUstream* stream, unsigned flags, int) {
  return call(EntryPoint::cuStreamCreateWithPriority, [&](Machine& machine, ThreadState&) {
    return machine.streams.create(stream, flags);
  });
}

CUresult cuStreamDestroy_v2(CUstream stream) {
  return call(EntryPoint::cuStreamDestroy_v2,
              [&](Machine& machine, ThreadState&) { return machine.destroy(stream); });
}

CUresult cuStreamQuery(CUstream stream) {
  return call(EntryPoint::cuStreamQuery,
              [&](Machine& machine, ThreadState&) { return machine.query(stream); });
}

CUresult cuStreamSynchronize(CUstream stream) {
  return call(EntryPoint::cuStreamSynchronize,
              [&](Machine& machine, ThreadState&) { return machine.synchronize(stream); });
}

CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags) {
  return call(EntryPoint::cuStreamWaitEvent, [&](Machine& machine, ThreadState&) {
    return machine.events.wait(stream, event, flags);
  });
}

CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus* status) {
  return call(EntryPoint::cuStreamIsCapturing, [&](Machine& machine, ThreadState&) {
    return on_stream(machine, stream,
                     [&](uint64_t id) { return machine.captures.status(id, status); });
  });
}

CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode) {
  return call(EntryPoint::cuStreamBeginCapture_v2, [&](Machine& machine, ThreadState&) {
    return on_stream(machine, stream,
                     [&](uint64_t id) { return machine.captures.begin(id, mode); });
  });
}

CUresult cuStreamEndCapture(CUstream stream, CUgraph* graph) {
  return call(EntryPoint::cuStreamEndCapture, [&](Machine& machine, ThreadState&) {
    return on_stream(machine, stream, [&](uint64_t id) { return machine.captures.end(id, graph); });
  });
}

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  return call(EntryPoint::cuThreadExchangeStreamCaptureMode,
              [&](Machine& machine, ThreadState& thread) {
                if (!mode || *mode > CU_STREAM_CAPTURE_MODE_RELAXED)
                  return machine.report.misuse(CUDA_ERROR_INVALID_VALUE, "unknown capture mode");
                std::swap(*mode, thread.capture_mode);
                return CUDA_SUCCESS;
              });
}

CUresult cuEventCreate(CUevent* event, unsigned flags) {
  return call(EntryPoint::cuEventCreate,
              [&](Machine& machine, ThreadState&) { return machine.events.create(event, flags); });
}

CUresult cuEventDestroy_v2(CUevent event) {
  return call(EntryPoint::cuEventDestroy_v2,
              [&](Machine& machine, ThreadState&) { return machine.events.destroy(event); });
}

CUresult cuEventRecord(CUevent event, CUstream stream) {
  return call(EntryPoint::cuEventRecord,
              [&](Machine& machine, ThreadState&) { return machine.events.record(event, stream); });
}

CUresult cuEventQuery(CUevent event) {
  return call(EntryPoint::cuEventQuery,
              [&](Machine& machine, ThreadState&) { return machine.events.query(event); });
}

CUresult cuEventSynchronize(CUevent event) {
  return call(EntryPoint::cuEventSynchronize,
              [&](Machine& machine, ThreadState&) { return machine.events.synchronize(event); });
}

}  // namespace gpushare::cuda
