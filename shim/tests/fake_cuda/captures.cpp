#include "captures.h"

namespace gpushare::fake_cuda {

CUresult Captures::begin(uint64_t stream, CUstreamCaptureMode mode) {
  if (mode > CU_STREAM_CAPTURE_MODE_RELAXED)
    return report_.misuse(CUDA_ERROR_INVALID_VALUE, "cuStreamBeginCapture: unknown mode");
  if (stream == kLegacy) return report_.capture_error(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  if (streams_.at(stream).capture) return report_.capture_error(CUDA_ERROR_ILLEGAL_STATE);
  active_[next_] = {stream, mode, std::this_thread::get_id(), false};
  streams_.at(stream).capture = next_++;
  return CUDA_SUCCESS;
}

CUresult Captures::end(uint64_t stream, CUgraph* graph) {
  if (!graph) return report_.misuse(CUDA_ERROR_INVALID_VALUE, "cuStreamEndCapture: no graph");
  *graph = nullptr;
  uint64_t id = streams_.at(stream).capture;
  if (!id) return report_.capture_error(CUDA_ERROR_ILLEGAL_STATE);
  Capture capture = active_.at(id);
  if (capture.origin != stream) return refuse(id, CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
  if (capture.mode != CU_STREAM_CAPTURE_MODE_RELAXED &&
      capture.thread != std::this_thread::get_id())
    return report_.capture_error(CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
  forget(id);
  if (capture.invalidated) return report_.capture_error(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  *graph = reinterpret_cast<CUgraph>(id);
  return CUDA_SUCCESS;
}

void Captures::forget(uint64_t id) {
  for (auto& [stream, state] : streams_.all())
    if (state.capture == id) state.capture = 0;
  active_.erase(id);
}

CUresult Captures::status(uint64_t stream, CUstreamCaptureStatus* status) {
  if (!status) return report_.misuse(CUDA_ERROR_INVALID_VALUE, "cuStreamIsCapturing: no status");
  if (stream == kLegacy && streams_.any_blocking([](auto& s) { return s.capture != 0; }))
    return report_.capture_error(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
  uint64_t id = streams_.at(stream).capture;
  *status = !id                          ? CU_STREAM_CAPTURE_STATUS_NONE
            : active_.at(id).invalidated ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                                         : CU_STREAM_CAPTURE_STATUS_ACTIVE;
  return CUDA_SUCCESS;
}

CUresult Captures::refuse(uint64_t capture, CUresult result) {
  auto found = active_.find(capture);
  if (found != active_.end()) found->second.invalidated = true;
  return report_.capture_error(result);
}

CUresult Captures::unsafe_call(CUstreamCaptureMode mode) {
  if (mode == CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_SUCCESS;
  CUresult result = CUDA_SUCCESS;
  for (auto& [id, capture] : active_) {
    bool mine = capture.thread == std::this_thread::get_id();
    bool forbids = mine ? capture.mode != CU_STREAM_CAPTURE_MODE_RELAXED
                        : mode == CU_STREAM_CAPTURE_MODE_GLOBAL &&
                              capture.mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
    if (!forbids) continue;
    capture.invalidated = true;
    result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  return result ? report_.capture_error(result) : result;
}

CUresult Captures::wait_for_device() {
  CUresult result = CUDA_SUCCESS;
  for (auto& [id, capture] : active_) {
    capture.invalidated = true;
    result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  return result ? report_.capture_error(result) : result;
}

CUresult Captures::may_issue(uint64_t stream) {
  if (stream == kLegacy) {
    // It would wait for the streams that are captured, which never run.
    for (auto& [id, state] : streams_.all())
      if (state.blocking && state.capture)
        return refuse(state.capture, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
  }
  uint64_t id = streams_.at(stream).capture;
  if (id && active_.at(id).invalidated)
    return report_.capture_error(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  return CUDA_SUCCESS;
}

CUresult Captures::may_ask(uint64_t stream) {
  if (auto wrong = may_issue(stream)) return wrong;
  uint64_t id = streams_.at(stream).capture;
  return id ? refuse(id, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED) : CUDA_SUCCESS;
}

CUresult Captures::captured_event(uint64_t capture) {
  return capture ? refuse(capture, CUDA_ERROR_CAPTURED_EVENT) : CUDA_SUCCESS;
}

CUresult Captures::wait(uint64_t stream, uint64_t of_event) {
  uint64_t& of_stream = streams_.at(stream).capture;
  if (of_event == of_stream) return CUDA_SUCCESS;
  if (!of_event) return refuse(of_stream, CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
  if (!active_.count(of_event)) return captured_event(of_event);
  if (of_stream) return refuse(of_stream, CUDA_ERROR_STREAM_CAPTURE_MERGE);
  if (stream == kLegacy) return refuse(of_event, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
  of_stream = of_event;  // the stream joins the capture
  return CUDA_SUCCESS;
}

void Captures::stream_destroyed(uint64_t stream) {
  uint64_t id = streams_.at(stream).capture;
  if (!id) return;
  if (active_.at(id).origin == stream)
    forget(id);
  else
    active_.at(id).invalidated = true;
}

}  // namespace gpushare::fake_cuda
