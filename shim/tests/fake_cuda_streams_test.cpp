// The fake CUDA driver's streams, events and clock: late, in every order that is allowed, and in no
// other.
#include <vector>

#include "fake_cuda/fixture.h"

using namespace gpushare::fake_cuda;

constexpr uint64_t kSeeds = 1000;

// How many of the seeds end with a wrong read.
template <class Issue>
static uint64_t seeds_with_wrong_reads(Issue issue) {
  uint64_t wrong = 0;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    Fresh fake(seed);
    issue(fake);
    CHECK(cuCtxSynchronize() == CUDA_SUCCESS && !fake.misuses.any());
    wrong += wrong_reads() > 0;
  }
  return wrong;
}

static bool sometimes(uint64_t wrong) { return wrong > kSeeds / 10 && wrong < kSeeds * 9 / 10; }

// One stream writes, another reads; between the two is what a test puts there.
template <class Between>
static uint64_t handing_over(unsigned writer_flags, unsigned reader_flags, Between between) {
  return seeds_with_wrong_reads([&](Fresh& fake) {
    CUstream writer = fake.stream(writer_flags), reader = fake.stream(reader_flags);
    CUdeviceptr memory = fake.memory();
    fake.write(writer, memory, 5);
    between(fake, writer, reader, memory);
    fake.read(reader, memory, 5);
  });
}

static void a_missing_wait_is_found() {
  auto free = CU_STREAM_NON_BLOCKING;
  CHECK(sometimes(handing_over(free, free, [](auto&&...) {})));
  CHECK(handing_over(free, free, [](Fresh& fake, CUstream writer, CUstream reader, CUdeviceptr) {
          CHECK(cuStreamWaitEvent(reader, fake.recorded(writer), 0) == CUDA_SUCCESS);
        }) == 0);
  // A wait for what was issued before the write is no wait for the write.
  CHECK(sometimes(seeds_with_wrong_reads([](Fresh& fake) {
    CUstream writer = fake.stream(), reader = fake.stream();
    CUdeviceptr memory = fake.memory();
    CUevent early = fake.recorded(writer);
    fake.write(writer, memory, 5);
    CHECK(cuStreamWaitEvent(reader, early, 0) == CUDA_SUCCESS);
    fake.read(reader, memory, 5);
  })));
}

static void seeds_are_reproducible() {
  auto outcome = [](uint64_t seed) {
    Fresh fake(seed);
    CUdeviceptr memory = fake.memory();
    CUstream streams[] = {fake.stream(), fake.stream(), fake.stream()};
    for (uint64_t i = 0; i < 9; ++i) fake.write(streams[i % 3], memory, i);
    uint64_t last;
    fake_cuda_run_all();
    CHECK(cuMemcpyDtoH_v2(&last, memory, 8) == CUDA_SUCCESS);
    return last;
  };
  bool differ = false;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    CHECK(outcome(seed) == outcome(seed));
    differ |= outcome(seed) != outcome(seed + 1);
  }
  CHECK(differ);
}

static void a_stream_keeps_its_order() {
  CHECK(seeds_with_wrong_reads([](Fresh& fake) {
          CUdeviceptr memory = fake.memory();
          CUstream stream = fake.stream(), noise = fake.stream();
          for (uint64_t i = 0; i < 5; ++i) {
            fake.write(stream, memory, i);
            fake.write(noise, fake.memory(), i);
            fake.read(stream, memory, i);
          }
        }) == 0);
}

static void nothing_runs_by_itself() {
  Fresh fake;
  CUstream stream = fake.stream();
  CUdeviceptr memory = fake.memory();
  fake.write(stream, memory, 5);
  CUevent event = fake.recorded(stream), never = fake.event();
  CHECK(cuEventQuery(event) == CUDA_ERROR_NOT_READY);
  CHECK(cuStreamQuery(stream) == CUDA_ERROR_NOT_READY);
  CHECK(cuEventQuery(never) == CUDA_SUCCESS);
  CHECK(fake_cuda_read_counters().pending == 2);
  CHECK(fake_cuda_run(1) == 1 && cuEventQuery(event) == CUDA_ERROR_NOT_READY);
  CHECK(fake_cuda_run_all() == 1 && cuEventQuery(event) == CUDA_SUCCESS);
  CHECK(cuStreamQuery(stream) == CUDA_SUCCESS && fake_cuda_read_counters().pending == 0);
  CHECK(fake_cuda_read_counters().operations == 2 && !fake.misuses.any());
}

static void waits_of_the_cpu_are_counted() {
  Fresh fake;
  CUstream stream = fake.stream();
  CUdeviceptr memory = fake.memory();
  auto is = [](fake_cuda_waits w, uint64_t calls, uint64_t ran) {
    return w.calls == calls && w.ran == ran;
  };
  fake.write(stream, memory, 5);
  CUevent event = fake.recorded(stream);
  fake.write(stream, memory, 6);
  CHECK(cuEventSynchronize(event) == CUDA_SUCCESS && cuEventSynchronize(event) == CUDA_SUCCESS);
  CHECK(cuStreamQuery(stream) == CUDA_ERROR_NOT_READY);  // the event's work, and no more
  CHECK(is(fake_cuda_read_counters().event_waits, 2, 1));
  for (int i = 0; i < 3; ++i) CHECK(cuStreamSynchronize(stream) == CUDA_SUCCESS);
  CHECK(is(fake_cuda_read_counters().stream_waits, 3, 1));
  CHECK(cuCtxSynchronize() == CUDA_SUCCESS);
  CHECK(is(fake_cuda_read_counters().context_waits, 1, 0));
  CHECK(fake_cuda_read_counters().device_waits == 0);
  CHECK(cuStreamWaitEvent(stream, fake.event(), 0) == CUDA_SUCCESS);  // never recorded: no wait
  CHECK(fake_cuda_read_counters().device_waits == 0);
  CHECK(cuStreamWaitEvent(stream, event, 0) == CUDA_SUCCESS);
  CHECK(fake_cuda_read_counters().device_waits == 1);
  CHECK(fake_cuda_calls("cuStreamWaitEvent") == 2 && fake_cuda_calls("cuStreamSynchronize") == 3);
}

static void a_later_record_moves_the_event_but_no_wait() {
  Fresh fake;
  CUstream one = fake.stream(), two = fake.stream(), waiter = fake.stream();
  CUdeviceptr memory = fake.memory();
  fake.write(one, memory, 1);
  CUevent event = fake.recorded(one);
  CHECK(cuStreamWaitEvent(waiter, event, 0) == CUDA_SUCCESS);
  fake_cuda_hold(two, 1);
  fake.write(two, fake.memory(), 2);
  CHECK(cuEventRecord(event, two) == CUDA_SUCCESS);
  CHECK(cuStreamSynchronize(waiter) == CUDA_SUCCESS);  // the old binding, so two may be held
  CHECK(cuEventQuery(event) == CUDA_ERROR_NOT_READY);  // the new one
  CHECK(cuStreamQuery(one) == CUDA_SUCCESS);
  fake_cuda_hold(two, 0);
  CHECK(cuEventSynchronize(event) == CUDA_SUCCESS && cuStreamQuery(two) == CUDA_SUCCESS);
}

static void a_destroyed_event_is_still_waited_for() {
  CHECK(handing_over(CU_STREAM_NON_BLOCKING, CU_STREAM_NON_BLOCKING,
                     [](Fresh& fake, CUstream writer, CUstream reader, CUdeviceptr) {
                       CUevent event = fake.recorded(writer);
                       CHECK(cuStreamWaitEvent(reader, event, 0) == CUDA_SUCCESS);
                       CHECK(cuEventDestroy_v2(event) == CUDA_SUCCESS);
                     }) == 0);
}

static void a_destroyed_stream_ends_its_work() {
  Fresh fake;
  CUstream stream = fake.stream(), idle = fake.stream();
  CUdeviceptr memory = fake.memory();
  fake.write(stream, memory, 5);
  CUevent event = fake.recorded(stream);
  CHECK(cuStreamDestroy_v2(stream) == CUDA_SUCCESS && cuStreamDestroy_v2(idle) == CUDA_SUCCESS);
  CHECK(fake_cuda_read_counters().live_streams == 0 && !fake.misuses.any());
  CHECK(cuEventQuery(event) == CUDA_ERROR_NOT_READY);
  CHECK(fake_cuda_launch_write(stream, memory, 8, 1) == CUDA_ERROR_INVALID_HANDLE);
  CHECK(fake.misuses.one("destroyed stream"));
  CHECK(cuEventSynchronize(event) == CUDA_SUCCESS);
  fake.read(nullptr, memory, 5);
  CHECK(cuCtxSynchronize() == CUDA_SUCCESS && wrong_reads() == 0);
}

static void stale_handles_are_misuses() {
  Fresh fake;
  Misuses& m = fake.misuses;
  auto invalid = CUDA_ERROR_INVALID_HANDLE;
  CUstream stream = fake.stream(), live = fake.stream();
  CUevent event = fake.event();
  CUstreamCaptureStatus status;
  CHECK(cuStreamDestroy_v2(stream) == CUDA_SUCCESS && cuEventDestroy_v2(event) == CUDA_SUCCESS);
  CHECK(fake_cuda_read_counters().live_events == 0 && !m.any());
  CHECK(cuStreamDestroy_v2(stream) == invalid && m.one("destroyed stream"));
  CHECK(cuStreamQuery(stream) == invalid && m.one("destroyed stream"));
  CHECK(cuStreamSynchronize(stream) == invalid && m.one("destroyed stream"));
  CHECK(cuStreamIsCapturing(stream, &status) == invalid && m.one("destroyed stream"));
  CHECK(cuEventRecord(fake.event(), stream) == invalid && m.one("destroyed stream"));
  CHECK(cuEventDestroy_v2(event) == invalid && m.one("destroyed event"));
  CHECK(cuEventQuery(event) == invalid && m.one("destroyed event"));
  CHECK(cuEventSynchronize(event) == invalid && m.one("destroyed event"));
  CHECK(cuEventRecord(event, live) == invalid && m.one("destroyed event"));
  CHECK(cuStreamWaitEvent(live, event, 0) == invalid && m.one("destroyed event"));
  CHECK(cuEventQuery(reinterpret_cast<CUevent>(live)) == invalid && m.one("no event"));
  CHECK(cuStreamQuery(reinterpret_cast<CUstream>(0x1234)) == invalid && m.one("no stream"));
  CHECK(cuStreamDestroy_v2(nullptr) == invalid && m.one("legacy"));
}

// Without any event: the legacy stream orders blocking streams, and leaves the others alone.
static void legacy_stream_orders_blocking_streams() {
  auto legacy_between = [](Fresh& fake, CUstream, CUstream, CUdeviceptr) {
    fake.write(nullptr, fake.memory(), 1);
  };
  auto blocking = CU_STREAM_DEFAULT, free = CU_STREAM_NON_BLOCKING;
  CHECK(sometimes(handing_over(blocking, blocking, [](auto&&...) {})));
  CHECK(handing_over(blocking, blocking, legacy_between) == 0);
  CHECK(sometimes(handing_over(free, blocking, legacy_between)));
  CHECK(sometimes(handing_over(blocking, free, legacy_between)));
}

static void waiting_for_the_legacy_stream_is_waiting_for_blocking_ones() {
  Fresh fake;
  CUstream blocking = fake.stream(CU_STREAM_DEFAULT), free = fake.stream();
  fake.write(blocking, fake.memory(), 1);
  fake_cuda_hold(free, 1);
  fake.write(free, fake.memory(), 1);
  CHECK(cuStreamQuery(nullptr) == CUDA_ERROR_NOT_READY);
  CHECK(cuStreamSynchronize(nullptr) == CUDA_SUCCESS);
  CHECK(cuStreamQuery(blocking) == CUDA_SUCCESS && cuStreamQuery(free) == CUDA_ERROR_NOT_READY);
  CHECK(cuStreamQuery(reinterpret_cast<CUstream>(1)) == CUDA_SUCCESS);  // CU_STREAM_LEGACY
  CHECK(!fake.misuses.any());
}

static void a_deadlock_is_told() {
  Fresh fake;
  CUstream stream = fake.stream(), other = fake.stream();
  CHECK(fake_cuda_hold(stream, 1) == CUDA_SUCCESS);
  fake.write(stream, fake.memory(), 1);
  CHECK(cuStreamWaitEvent(other, fake.recorded(stream), 0) == CUDA_SUCCESS);
  CHECK(cuStreamSynchronize(other) == CUDA_ERROR_TIMEOUT && fake.misuses.one("deadlock"));
  CHECK(fake_cuda_read_counters().deadlocks == 1);
  CHECK(fake_cuda_hold(stream, 0) == CUDA_SUCCESS);
  CHECK(cuStreamSynchronize(other) == CUDA_SUCCESS && fake_cuda_read_counters().deadlocks == 1);
}

static void the_clock_does_not_depend_on_the_order() {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    Fresh fake(seed);
    CUstream one = fake.stream(), two = fake.stream(), three = fake.stream();
    CUdeviceptr memory = fake.memory();
    fake.write(one, memory, 1, 10);
    fake.write(two, fake.memory(), 1, 4);
    if (seed % 2) fake_cuda_run_all();
    CHECK(fake_cuda_device_time() == 10);  // side by side
    CUevent event = fake.recorded(one);
    fake.write(one, memory, 1, 100);  // after the event, so nobody waits for it
    CHECK(cuStreamWaitEvent(two, event, 0) == CUDA_SUCCESS);
    fake.write(two, fake.memory(), 1, 95);
    CHECK(fake_cuda_device_time() == 110);
    fake.write(two, fake.memory(), 1, 6);  // 10 + 95 + 6
    CHECK(fake_cuda_device_time() == 111);
    fake_cuda_set_issue_time(200);
    fake.read(three, memory, 1);
    CHECK(fake_cuda_device_time() == 201);
    fake_cuda_run_all();
    CHECK(fake_cuda_device_time() == 201);
  }
}

static void the_clock_knows_the_legacy_stream() {
  Fresh fake;
  CUstream blocking = fake.stream(CU_STREAM_DEFAULT), free = fake.stream();
  CUdeviceptr memory = fake.memory();
  fake.write(blocking, memory, 1, 5);
  fake.write(free, memory, 1, 50);
  fake.write(nullptr, memory, 1, 20);   // from 5
  fake.write(blocking, memory, 1, 20);  // from 25
  CHECK(fake_cuda_device_time() == 50);
  fake.write(blocking, memory, 1, 6);
  CHECK(fake_cuda_device_time() == 51);
}

int main() {
  a_missing_wait_is_found();
  seeds_are_reproducible();
  a_stream_keeps_its_order();
  nothing_runs_by_itself();
  waits_of_the_cpu_are_counted();
  a_later_record_moves_the_event_but_no_wait();
  a_destroyed_event_is_still_waited_for();
  a_destroyed_stream_ends_its_work();
  stale_handles_are_misuses();
  legacy_stream_orders_blocking_streams();
  waiting_for_the_legacy_stream_is_waiting_for_blocking_ones();
  a_deadlock_is_told();
  the_clock_does_not_depend_on_the_order();
  the_clock_knows_the_legacy_stream();
}
