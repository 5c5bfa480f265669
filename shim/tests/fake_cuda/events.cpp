#include "events.h"

#include <algorithm>

namespace gpushare::fake_cuda {

CUresult Events::create(CUevent* event, unsigned flags) {
  constexpr unsigned known =
      CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS;
  bool timed = !(flags & CU_EVENT_DISABLE_TIMING);
  if (!event || (flags & ~known) || (flags & CU_EVENT_INTERPROCESS && timed))
    return report_.misuse(CUDA_ERROR_INVALID_VALUE,
                          "cuEventCreate: impossible flags " + std::to_string(flags));
  all_[next_];
  *event = reinterpret_cast<CUevent>(next_);
  next_ += kStep;
  ++report_.counters.live_events;
  return CUDA_SUCCESS;
}

Events::State* Events::find(CUevent event) {
  auto id = reinterpret_cast<uint64_t>(event);
  auto found = all_.find(id);
  if (found != all_.end()) return &found->second;
  bool was = id >= kFirst && id < next_ && (id - kFirst) % kStep == 0;
  report_.misuse(CUDA_ERROR_INVALID_HANDLE,
                 hex(id) + (was ? " is a destroyed event" : " is no event"));
  return nullptr;
}

CUresult Events::destroy(CUevent event) {
  if (!find(event)) return CUDA_ERROR_INVALID_HANDLE;
  all_.erase(reinterpret_cast<uint64_t>(event));
  --report_.counters.live_events;
  return CUDA_SUCCESS;
}

CUresult Events::record(CUevent event, CUstream stream) {
  uint64_t id;
  State* state = find(event);
  if (!state || !streams_.find(stream, &id)) return CUDA_ERROR_INVALID_HANDLE;
  if (auto wrong = captures_.may_issue(id)) return wrong;
  state->capture = streams_.at(id).capture;
  if (state->capture)
    ++report_.counters.captured;
  else
    state->recorded = streams_.issue(id, {});
  return CUDA_SUCCESS;
}

CUresult Events::query(CUevent event) {
  State* state = find(event);
  if (!state) return CUDA_ERROR_INVALID_HANDLE;
  if (auto wrong = captures_.captured_event(state->capture)) return wrong;
  if (!streams_.passed(state->recorded)) return CUDA_ERROR_NOT_READY;
  // The CPU knows it now, so what it issues from here on is later.
  streams_.issue_time = std::max(streams_.issue_time, state->recorded.time);
  return CUDA_SUCCESS;
}

CUresult Events::synchronize(CUevent event) {
  State* state = find(event);
  if (!state) return CUDA_ERROR_INVALID_HANDLE;
  if (auto wrong = captures_.captured_event(state->capture)) return wrong;
  return streams_.run_until({state->recorded}, report_.counters.event_waits) ? CUDA_SUCCESS
                                                                             : CUDA_ERROR_TIMEOUT;
}

CUresult Events::wait(CUstream stream, CUevent event, unsigned flags) {
  uint64_t id;
  State* state = find(event);
  if (!state || !streams_.find(stream, &id)) return CUDA_ERROR_INVALID_HANDLE;
  if (flags)
    return report_.misuse(CUDA_ERROR_INVALID_VALUE, "cuStreamWaitEvent: the flags must be 0");
  if (auto wrong = captures_.may_issue(id)) return wrong;
  if (!state->capture && !state->recorded.operations) return CUDA_SUCCESS;  // nothing to wait for
  if (auto wrong = captures_.wait(id, state->capture)) return wrong;
  if (streams_.at(id).capture) {
    ++report_.counters.captured;
    return CUDA_SUCCESS;
  }
  ++report_.counters.device_waits;
  Operation op;
  op.after = {state->recorded};
  op.for_memory = waits_for_memory;
  streams_.issue(id, std::move(op));
  return CUDA_SUCCESS;
}

}  // namespace gpushare::fake_cuda
