// Captures of CUDA graphs that begin where memory is just being fenced, and those of others that
// the legacy stream would spoil: no capture is spoilt, and what was freed is there again once it
// ends.
#include <thread>

#include "given_up.h"

namespace {

// The stream that another thread captures right after it was found not to be captured; `briefly`:
// that capture ends before the next look.
CUstream captured_next = nullptr, ends_next = nullptr;
bool briefly = false;

const Driver& real_driver() {
  static const Driver driver(GPUSHARE_FAKE_CUDA);
  return driver;
}

CUresult look_before_capture(CUstream stream, CUstreamCaptureStatus* status) {
  if (ends_next && stream == ends_next) {
    ends_next = nullptr;
    CUgraph graph;
    CHECK(real_driver().cuStreamEndCapture(stream, &graph) == CUDA_SUCCESS);
  }
  CUresult result = real_driver().cuStreamIsCapturing(stream, status);
  if (captured_next && stream == captured_next) {
    captured_next = nullptr;
    CHECK(real_driver().cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED) ==
          CUDA_SUCCESS);
    if (briefly) ends_next = stream;
  }
  return result;
}

// The first job's batch, closed while its stream begins to be captured.
void free_into_capture(World& w) {
  PageIndex first = w.take(1, kPages);
  write(w.streams[0], w.g.pool().address(first), kPages * kPage, 11);
  w.unhold(1, first, kPages, true);
  captured_next = w.streams[0];
  w.g.fences().close(1);
  CHECK(!captured_next && w.g.fences().closed(1, 1));
}

// Another job gets all of it, behind the first one's work.
void second_job_goes_on(World& w) {
  PageIndex first = w.take(2, kPages);
  write(w.streams[1], w.g.pool().address(first), kPages * kPage, 22);
  w.unhold(2, first, kPages, true);
  w.finish();
}

void it_begins_after_the_look(const Driver& driver, uint64_t seed) {
  World w(driver, seed);
  free_into_capture(w);
  uint64_t recorded = fake_cuda_calls("cuEventRecord");
  w.g.tick();
  CHECK(!w.g.fences().settles(1, 1));
  CHECK(fake_cuda_calls("cuEventRecord") == recorded);  // nothing more goes into the graph
  DeviceWork work;
  PageIndex first = w.hold(2, kPages, work);
  CHECK(w.fails(work, 2));
  w.unhold(2, first, kPages, true, &work);
  w.end_capture(1);
  CHECK(fake_cuda_read_counters().capture_errors == 0);
  CHECK(w.g.fences().settles(1, 1));
  second_job_goes_on(w);
  w.g.tick();
  CHECK(w.g.fences().passed(1, 1));
}

// What was recorded is in the graph, and no look at the stream tells.
void it_is_over_at_the_next_look(const Driver& driver, uint64_t seed) {
  for (bool wanted_at_once : {true, false}) {
    World w(driver, seed);
    briefly = true;
    free_into_capture(w);
    briefly = false;
    CHECK(!ends_next);
    if (!wanted_at_once) w.g.tick();
    second_job_goes_on(w);
    w.g.tick();
    CHECK(w.g.fences().passed(1, 1));
  }
}

// All that the stream was given is marked when it goes.
void its_stream_is_gone_when_it_has_ended(const Driver& driver, uint64_t seed) {
  World w(driver, seed);
  free_into_capture(w);
  w.end_capture(1);
  w.g.fences().remove_stream(w.handles[0]);
  w.g.forget_stream(w.handles[0]);
  CHECK(driver.cuStreamDestroy_v2(w.streams[0]) == CUDA_SUCCESS);
  second_job_goes_on(w);
}

// A job ends with a capture under way, of the thread that ends it or of another one, or its stream
// is taken from it: nobody waits for what is captured, and all do for what came before.
void its_stream_goes_while_it_is_captured(const Driver& driver, uint64_t seed, bool by_another) {
  World w(driver, seed);
  PageIndex first = w.take(1, kPages);
  write(w.streams[0], w.g.pool().address(first), kPages * kPage, 11);
  CHECK(w.g.fences().settles(1, w.g.fences().open(1)));  // as where a capture begins
  std::thread([&] { by_another ? w.begin_capture(1) : void(); }).join();
  if (!by_another) w.begin_capture(1);
  w.unhold(1, first, kPages, true);
  uint64_t recorded = fake_cuda_calls("cuEventRecord");
  CHECK(!w.g.fences().settles(1, w.g.fences().open(1)));
  CHECK(fake_cuda_calls("cuEventRecord") == recorded);
  w.g.fences().abandon_capture(w.handles[0]);
  CHECK(w.device.capturing(w.handles[0]) == by_another);
  w.g.fences().remove_stream(w.handles[0]);
  w.g.forget_stream(w.handles[0]);
  second_job_goes_on(w);
  Batch last = w.g.fences().open(1);
  CHECK(w.g.fences().settles(1, last));
  w.g.tick();
  CHECK(w.g.fences().passed(1, last));
}

// The legacy stream comes after blocking ones, so nothing may be recorded on it meanwhile.
void what_is_freed_on_the_legacy_stream_waits(const Driver& driver, uint64_t seed) {
  World w(driver, seed);
  w.g.fences().add_stream(0, 0);
  DeviceWork work;
  w.g.charge(0, kPages, false, kPages * kPage);
  PageIndex first = w.g.hold_range(kPages, 0, 0, work);
  w.g.perform(work, 0, 0);
  write(nullptr, w.g.pool().address(first), kPages * kPage, 11);
  w.begin_capture(1);
  std::atomic<Stream> legacy{0};
  w.g.unhold(first, kPages, 0, legacy, true);
  w.g.fences().close(0);
  w.g.tick();
  w.end_capture(1);
  second_job_goes_on(w);
}

// A wait would break the capture that the other job is in: it is told, and waits afterwards.
void who_captures_does_not_wait(const Driver& driver, uint64_t seed) {
  World w(driver, seed);
  PageIndex first = w.take(1, kPages);
  write(w.streams[0], w.g.pool().address(first), kPages * kPage, 11);
  w.unhold(1, first, kPages, true);
  Batch freed = w.g.fences().open(1);
  CHECK(w.g.fences().settles(1, freed));
  w.begin_capture(2);
  uint64_t waits = fake_cuda_calls("cuStreamWaitEvent");
  uint32_t by = 0;
  try {
    w.g.fences().wait(w.handles[1], 1, freed, 2);
  } catch (const CaptureUnderWay& capture) {
    by = capture.by;
  }
  CHECK(by == 2);
  CHECK(fake_cuda_calls("cuStreamWaitEvent") == waits);
  w.end_capture(2);
  CHECK(fake_cuda_read_counters().capture_errors == 0);
  second_job_goes_on(w);
}

}  // namespace

int main() {
  setvbuf(stdout, nullptr, _IONBF, 0);
  Driver hooked(GPUSHARE_FAKE_CUDA);
  hooked.cuStreamIsCapturing = look_before_capture;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    it_begins_after_the_look(hooked, seed);
    it_is_over_at_the_next_look(hooked, seed);
    its_stream_is_gone_when_it_has_ended(hooked, seed);
    what_is_freed_on_the_legacy_stream_waits(hooked, seed);
    who_captures_does_not_wait(hooked, seed);
    for (bool by_another : {false, true})
      its_stream_goes_while_it_is_captured(hooked, seed, by_another);
  }
  printf("cuda captures: ok\n");
}
