// Stream capture, as far as it shows without graphs: which streams are capturing, and which calls
// that forbids. What is issued on a capturing stream is not run and not kept.
#pragma once

#include <thread>

#include "streams.h"

namespace gpushare::fake_cuda {

class Captures {
 public:
  Captures(Report& report, Streams& streams) : report_(report), streams_(streams) {}

  CUresult begin(uint64_t stream, CUstreamCaptureMode mode);
  CUresult end(uint64_t stream, CUgraph* graph);
  CUresult status(uint64_t stream, CUstreamCaptureStatus* status);

  // Whether the thread, in its mode, may make a call that is unsafe while something captures.
  CUresult unsafe_call(CUstreamCaptureMode mode);
  // Whether the stream may be asked whether its work is over.
  CUresult may_ask(uint64_t stream);
  // A wait for all streams: it breaks every capture, of other threads and in whichever mode, as was
  // seen on an H200 (driver 580).
  CUresult wait_for_device();
  // Whether something may be issued on the stream. If it succeeds, and the stream captures, then
  // the caller has nothing to run.
  CUresult may_issue(uint64_t stream);
  // Whether a CPU may ask for an event that was recorded in a capture.
  CUresult captured_event(uint64_t capture);
  // The stream is to wait for an event that was recorded in that capture, or in none.
  CUresult wait(uint64_t stream, uint64_t capture_of_event);
  void stream_destroyed(uint64_t stream);

 private:
  struct Capture {
    uint64_t origin;
    CUstreamCaptureMode mode;
    std::thread::id thread;
    bool invalidated;
  };
  CUresult refuse(uint64_t capture, CUresult result);
  void forget(uint64_t capture);

  Report& report_;
  Streams& streams_;
  uint64_t next_ = 1;
  std::map<uint64_t, Capture> active_;
};

}  // namespace gpushare::fake_cuda
