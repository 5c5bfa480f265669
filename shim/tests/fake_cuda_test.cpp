// The fake CUDA driver itself: entry points, contexts, faults, captures, threads.
#include <dlfcn.h>

#include <cstring>
#include <thread>
#include <vector>

#include "fake_cuda/fixture.h"

using namespace gpushare::fake_cuda;

static void opened_by_path_it_is_the_same_library() {
  fake_cuda_reset(1);
  void* library = dlopen(GPUSHARE_FAKE_CUDA, RTLD_NOW | RTLD_LOCAL);
  CHECK(library);
  size_t names = 0;
  for (auto name = fake_cuda_entry_points(); *name; ++name, ++names) CHECK(dlsym(library, *name));
  CHECK(names == 41);
  CHECK(!dlsym(library, "cuMemGetInfo"));  // only under the name that the real one exports
  auto init = reinterpret_cast<CUresult (*)(unsigned)>(dlsym(library, "cuInit"));
  CHECK(init(0) == CUDA_SUCCESS);
  CHECK(fake_cuda_calls("cuInit") == 1 && fake_cuda_calls("cuNothing") == 0);
  dlclose(library);
}

static void nothing_works_before_init() {
  fake_cuda_reset(1);
  Misuses misuses;
  int version, count;
  CHECK(cuDriverGetVersion(&version) == CUDA_SUCCESS && version >= 12000);
  CHECK(!misuses.any());
  CHECK(cuDeviceGetCount(&count) == CUDA_ERROR_NOT_INITIALIZED && misuses.one("cuDeviceGetCount"));
  CHECK(cuInit(1) == CUDA_ERROR_INVALID_VALUE && misuses.any());
  CHECK(cuInit(0) == CUDA_SUCCESS);
  CHECK(cuDeviceGetCount(&count) == CUDA_SUCCESS && count == 1);
}

static void there_is_one_device() {
  Fresh fake;
  CUdevice device;
  char name[64];
  CHECK(cuDeviceGet(&device, 0) == CUDA_SUCCESS && device == 0);
  CHECK(cuDeviceGetName(name, sizeof name, device) == CUDA_SUCCESS && strstr(name, "Fake"));
  CHECK(!fake.misuses.any());
  CHECK(cuDeviceGet(&device, 1) == CUDA_ERROR_INVALID_DEVICE &&
        fake.misuses.one("there are 1 devices"));
}

static void contexts_are_current_per_thread() {
  Fresh fake;
  CUcontext context;
  CHECK(cuCtxGetCurrent(&context) == CUDA_SUCCESS && context);
  std::thread([&] {
    CUcontext none;
    CUevent event;
    CHECK(cuCtxGetCurrent(&none) == CUDA_SUCCESS && !none);
    CHECK(cuEventCreate(&event, 0) == CUDA_ERROR_INVALID_CONTEXT);
    CHECK(cuCtxSetCurrent(context) == CUDA_SUCCESS);
    CHECK(cuEventCreate(&event, 0) == CUDA_SUCCESS);
  }).join();
  CHECK(fake.misuses.one("no current context"));
  CHECK(cuDevicePrimaryCtxRelease_v2(0) == CUDA_SUCCESS);
  CHECK(cuCtxSynchronize() == CUDA_ERROR_CONTEXT_IS_DESTROYED && fake.misuses.one("released"));
  CHECK(cuDevicePrimaryCtxRelease_v2(0) == CUDA_ERROR_INVALID_CONTEXT && fake.misuses.any());
  CHECK(cuCtxSetCurrent(context) == CUDA_ERROR_INVALID_CONTEXT && fake.misuses.any());
}

static void results_have_names() {
  Fresh fake;
  const char* name;
  CHECK(cuGetErrorName(CUDA_ERROR_NOT_READY, &name) == CUDA_SUCCESS);
  CHECK(!strcmp(name, "CUDA_ERROR_NOT_READY"));
  CHECK(cuGetErrorString(CUDA_ERROR_NOT_READY, &name) == CUDA_SUCCESS && *name);
  CHECK(cuGetErrorName(static_cast<CUresult>(12345), &name) == CUDA_ERROR_INVALID_VALUE && !name);
}

static void faults_come_when_they_were_ordered() {
  Fresh fake;
  CUevent event = fake.event();
  CHECK(fake_cuda_fail("cuEventQuery", 2, CUDA_ERROR_LAUNCH_FAILED));
  CHECK(fake_cuda_fail("cuEventQuery", 4, CUDA_ERROR_UNKNOWN));
  CUresult expected[] = {CUDA_SUCCESS, CUDA_ERROR_LAUNCH_FAILED, CUDA_SUCCESS, CUDA_ERROR_UNKNOWN,
                         CUDA_SUCCESS};
  for (auto result : expected) CHECK(cuEventQuery(event) == result);
  CHECK(fake_cuda_fail("cuMemCreate", 1, CUDA_ERROR_OUT_OF_MEMORY));
  CUmemGenericAllocationHandle handle;
  auto properties = on_device();
  CHECK(cuMemCreate(&handle, kPage, &properties, 0) == CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(fake_cuda_read_counters().live_handles == 0 && !fake.misuses.any());
  CHECK(!fake_cuda_fail("cuMemGetInfo", 1, CUDA_ERROR_UNKNOWN));  // not exported under that name
}

template <class... Parameters>
static CUresult call_with_nothing(CUresult (*entry_point)(Parameters...)) {
  return entry_point(Parameters{}...);
}

static void every_entry_point_can_fail() {
  Fresh fake;
#define FAIL(name, parameters)                         \
  CHECK(fake_cuda_fail(#name, 1, CUDA_ERROR_UNKNOWN)); \
  CHECK(call_with_nothing(name) == CUDA_ERROR_UNKNOWN);
  GPUSHARE_CUDA_ENTRY_POINTS(FAIL)
#undef FAIL
  CHECK(!fake.misuses.any());
}

static CUresult begin(CUstream stream, CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED) {
  return cuStreamBeginCapture_v2(stream, mode);
}

static CUstreamCaptureStatus status_of(CUstream stream) {
  CUstreamCaptureStatus status;
  CHECK(cuStreamIsCapturing(stream, &status) == CUDA_SUCCESS);
  return status;
}

static void captured_work_does_not_run() {
  Fresh fake;
  CUstream stream = fake.stream();
  CUdeviceptr memory = fake.memory();
  CUgraph graph = nullptr;
  CHECK(status_of(stream) == CU_STREAM_CAPTURE_STATUS_NONE);
  CHECK(begin(stream) == CUDA_SUCCESS);
  CHECK(begin(stream) == CUDA_ERROR_ILLEGAL_STATE);
  CHECK(status_of(stream) == CU_STREAM_CAPTURE_STATUS_ACTIVE);
  fake.write(stream, memory, 7);
  CUevent event = fake.recorded(stream);
  CHECK(fake_cuda_run_all() == 0 && fake_cuda_read_counters().captured == 2);
  CHECK(cuStreamEndCapture(stream, &graph) == CUDA_SUCCESS && graph);
  CHECK(cuStreamEndCapture(stream, &graph) == CUDA_ERROR_ILLEGAL_STATE && !graph);
  CHECK(cuEventQuery(event) == CUDA_ERROR_CAPTURED_EVENT);
  CHECK(cuEventRecord(event, stream) == CUDA_SUCCESS);  // outside, so it is an event again
  CHECK(cuEventQuery(event) == CUDA_ERROR_NOT_READY);
  CHECK(cuEventSynchronize(event) == CUDA_SUCCESS);
  CHECK(fake_cuda_read_counters().capture_errors == 3 && !fake.misuses.any());
}

// Each of these ends a capture of the stream or of the event, as the real ones do.
static void asking_a_capture_invalidates_it() {
  using Ask = CUresult (*)(CUstream, CUevent captured, CUevent other);
  struct {
    Ask ask;
    CUresult result;
  } cases[] = {
      {[](CUstream s, CUevent, CUevent) { return cuStreamQuery(s); },
       CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED},
      {[](CUstream s, CUevent, CUevent) { return cuStreamSynchronize(s); },
       CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED},
      {[](CUstream, CUevent e, CUevent) { return cuEventQuery(e); }, CUDA_ERROR_CAPTURED_EVENT},
      {[](CUstream, CUevent e, CUevent) { return cuEventSynchronize(e); },
       CUDA_ERROR_CAPTURED_EVENT},
      {[](CUstream s, CUevent, CUevent e) { return cuStreamWaitEvent(s, e, 0); },
       CUDA_ERROR_STREAM_CAPTURE_ISOLATION},
  };
  for (auto& [ask, result] : cases) {
    Fresh fake;
    CUstreamCaptureMode relaxed = CU_STREAM_CAPTURE_MODE_RELAXED;
    CHECK(cuThreadExchangeStreamCaptureMode(&relaxed) == CUDA_SUCCESS);
    CUstream stream = fake.stream();
    CUevent other = fake.recorded(fake.stream());
    CUgraph graph;
    CHECK(begin(stream, CU_STREAM_CAPTURE_MODE_GLOBAL) == CUDA_SUCCESS);
    CUevent captured = fake.recorded(stream);
    CHECK(status_of(stream) == CU_STREAM_CAPTURE_STATUS_ACTIVE);
    CHECK(ask(stream, captured, other) == result);
    CHECK(status_of(stream) == CU_STREAM_CAPTURE_STATUS_INVALIDATED);
    CHECK(cuEventRecord(captured, stream) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    CHECK(cuStreamEndCapture(stream, &graph) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED && !graph);
    CHECK(status_of(stream) == CU_STREAM_CAPTURE_STATUS_NONE);
    CHECK(!fake.misuses.any());
  }
}

static void legacy_stream_and_captures() {
  Fresh fake;
  CUstream blocking = fake.stream(CU_STREAM_DEFAULT);
  CUstreamCaptureStatus status;
  CUgraph graph;
  CHECK(begin(nullptr) == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  CHECK(begin(fake.stream()) == CUDA_SUCCESS);  // does not block with the legacy stream
  CHECK(cuEventRecord(fake.event(), nullptr) == CUDA_SUCCESS);
  CHECK(begin(blocking) == CUDA_SUCCESS);
  CHECK(cuStreamIsCapturing(nullptr, &status) == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
  CHECK(status_of(blocking) == CU_STREAM_CAPTURE_STATUS_ACTIVE);
  CHECK(cuEventRecord(fake.event(), nullptr) == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
  CHECK(status_of(blocking) == CU_STREAM_CAPTURE_STATUS_INVALIDATED);
  CHECK(fake_cuda_launch_write(blocking, fake.memory(), 8, 1) ==
        CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  CHECK(cuStreamEndCapture(blocking, &graph) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

static void a_stream_joins_a_capture_by_its_event() {
  Fresh fake;
  CUstream origin = fake.stream(), joined = fake.stream();
  CUgraph graph;
  CHECK(begin(origin) == CUDA_SUCCESS);
  CUevent event = fake.recorded(origin);
  CHECK(cuStreamWaitEvent(joined, event, 0) == CUDA_SUCCESS);
  CHECK(status_of(joined) == CU_STREAM_CAPTURE_STATUS_ACTIVE);
  CHECK(cuStreamWaitEvent(nullptr, event, 0) == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
  CHECK(cuStreamEndCapture(joined, &graph) == CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
  CHECK(cuStreamEndCapture(origin, &graph) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  CHECK(begin(origin) == CUDA_SUCCESS);
  CHECK(cuEventRecord(event, origin) == CUDA_SUCCESS);
  CHECK(cuStreamWaitEvent(joined, event, 0) == CUDA_SUCCESS);
  CHECK(cuStreamEndCapture(origin, &graph) == CUDA_SUCCESS && graph);
  CHECK(status_of(joined) == CU_STREAM_CAPTURE_STATUS_NONE);
  CHECK(cuStreamWaitEvent(joined, event, 0) == CUDA_ERROR_CAPTURED_EVENT);
}

static void captures_do_not_merge() {
  Fresh fake;
  CUstream one = fake.stream(), two = fake.stream();
  CHECK(begin(one) == CUDA_SUCCESS && begin(two) == CUDA_SUCCESS);
  CHECK(cuStreamWaitEvent(two, fake.recorded(one), 0) == CUDA_ERROR_STREAM_CAPTURE_MERGE);
  CHECK(status_of(two) == CU_STREAM_CAPTURE_STATUS_INVALIDATED);
  CHECK(status_of(one) == CU_STREAM_CAPTURE_STATUS_ACTIVE);
}

static void a_destroyed_stream_ends_its_capture() {
  Fresh fake;
  CUstream origin = fake.stream(), joined = fake.stream(), late = fake.stream();
  CHECK(begin(origin) == CUDA_SUCCESS);
  CUevent event = fake.recorded(origin);
  for (CUstream stream : {joined, late}) CHECK(cuStreamWaitEvent(stream, event, 0) == CUDA_SUCCESS);
  CHECK(cuStreamDestroy_v2(joined) == CUDA_SUCCESS);
  CHECK(status_of(origin) == CU_STREAM_CAPTURE_STATUS_INVALIDATED);
  CHECK(cuStreamDestroy_v2(origin) == CUDA_SUCCESS);
  CHECK(status_of(late) == CU_STREAM_CAPTURE_STATUS_NONE && !fake.misuses.any());
}

// What a call that is unsafe while something captures does to a capture of another thread.
static CUresult unsafe_beside(CUstreamCaptureMode capture, CUstreamCaptureMode thread) {
  Fresh fake;
  CUstream stream = fake.stream();
  CUevent event = fake.recorded(fake.stream());
  CHECK(begin(stream, capture) == CUDA_SUCCESS);
  CUresult result;
  std::thread([&] {
    CUstreamCaptureMode mode = thread;
    CHECK(cuThreadExchangeStreamCaptureMode(&mode) == CUDA_SUCCESS);
    CHECK(mode == CU_STREAM_CAPTURE_MODE_GLOBAL);
    result = cuEventQuery(event);
    CUgraph graph;
    CHECK((cuStreamEndCapture(stream, &graph) == CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD) ==
          (capture != CU_STREAM_CAPTURE_MODE_RELAXED));
  }).join();
  bool unsafe = result == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  CHECK((status_of(stream) == CU_STREAM_CAPTURE_STATUS_INVALIDATED) == unsafe);
  return result;
}

static void captures_forbid_unsafe_calls() {
  auto global = CU_STREAM_CAPTURE_MODE_GLOBAL, local = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
       relaxed = CU_STREAM_CAPTURE_MODE_RELAXED;
  CHECK(unsafe_beside(global, global) == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  CHECK(unsafe_beside(global, local) == CUDA_ERROR_NOT_READY);
  CHECK(unsafe_beside(global, relaxed) == CUDA_ERROR_NOT_READY);
  CHECK(unsafe_beside(local, global) == CUDA_ERROR_NOT_READY);
  CHECK(unsafe_beside(relaxed, global) == CUDA_ERROR_NOT_READY);
  Fresh fake;
  auto handle = fake.create();
  CHECK(begin(fake.stream(), relaxed) == CUDA_SUCCESS);  // of this thread itself
  CHECK(cuMemRelease(fake.create()) == CUDA_SUCCESS);
  CHECK(begin(fake.stream(), local) == CUDA_SUCCESS);
  CHECK(cuMemRelease(handle) == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  CHECK(cuThreadExchangeStreamCaptureMode(&relaxed) == CUDA_SUCCESS);
  CHECK(cuMemRelease(handle) == CUDA_SUCCESS);
}

static void threads_share_the_machine() {
  Fresh fake;
  CUcontext context;
  CHECK(cuCtxGetCurrent(&context) == CUDA_SUCCESS);
  std::vector<std::thread> threads;
  for (uint64_t tag = 1; tag <= 4; ++tag)
    threads.emplace_back([&, tag] {
      CHECK(cuCtxSetCurrent(context) == CUDA_SUCCESS);
      CUstream one = fake.stream(), two = fake.stream();
      for (int i = 0; i < 50; ++i) {
        CUdeviceptr memory = fake.memory();
        fake.write(one, memory, tag);
        CUevent event = fake.recorded(one);
        CHECK(cuStreamWaitEvent(two, event, 0) == CUDA_SUCCESS);
        fake.read(two, memory, tag);
        uint64_t seen = 0;
        CHECK(cuMemcpyDtoHAsync_v2(&seen, memory, sizeof seen, two) == CUDA_SUCCESS);
        CHECK(cuStreamSynchronize(two) == CUDA_SUCCESS && seen == tag);
        CHECK(cuMemUnmap(memory, kPage) == CUDA_SUCCESS);
        CHECK(cuEventDestroy_v2(event) == CUDA_SUCCESS);
      }
    });
  for (auto& thread : threads) thread.join();
  CHECK(wrong_reads() == 0 && !fake.misuses.any());
}

int main() {
  opened_by_path_it_is_the_same_library();
  nothing_works_before_init();
  there_is_one_device();
  contexts_are_current_per_thread();
  results_have_names();
  faults_come_when_they_were_ordered();
  every_entry_point_can_fail();
  captured_work_does_not_run();
  asking_a_capture_invalidates_it();
  legacy_stream_and_captures();
  a_stream_joins_a_capture_by_its_event();
  captures_do_not_merge();
  a_destroyed_stream_ends_its_capture();
  captures_forbid_unsafe_calls();
  threads_share_the_machine();
}
