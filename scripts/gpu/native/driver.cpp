// Calls and timed loops on CUDA's driver interface. Functions return the driver's error code.
#include <chrono>
#include <vector>

#include "driver_api.h"

using driver::Access;
using driver::AllocationProperties;
using driver::Event;
using driver::Handle;
using driver::Pointer;
using driver::Stream;

namespace {
using Clock = std::chrono::steady_clock;

// Runs `step(i)` for i below `count`, adds the mean in microseconds to `means`; the first error
// ends it.
template <typename Step>
int timed(int count, std::vector<double>& means, Step step) {
  const auto begin = Clock::now();
  for (int i = 0; i < count; ++i)
    if (int e = step(i)) return e;
  means.push_back(std::chrono::duration<double, std::micro>(Clock::now() - begin).count() / count);
  return 0;
}

int copied(int error, const std::vector<double>& means, double* out) {
  for (size_t i = 0; i < means.size(); ++i) out[i] = means[i];
  return error;
}

const AllocationProperties properties;
const Access access_everything;

auto create = [](Handle* handle, size_t bytes) {
  static auto f =
      driver::function<Handle*, size_t, const AllocationProperties*, unsigned long long>(
          "cuMemCreate");
  return f(handle, bytes, &properties, 0ull);
};
auto map = [](Pointer at, size_t bytes, size_t offset, Handle handle) {
  static auto f = driver::function<Pointer, size_t, size_t, Handle, unsigned long long>("cuMemMap");
  return f(at, bytes, offset, handle, 0ull);
};
auto allow = [](Pointer at, size_t bytes) {
  static auto f = driver::function<Pointer, size_t, const Access*, size_t>("cuMemSetAccess");
  return f(at, bytes, &access_everything, size_t{1});
};
auto unmap = [](Pointer at, size_t bytes) {
  static auto f = driver::function<Pointer, size_t>("cuMemUnmap");
  return f(at, bytes);
};
auto release = [](Handle handle) {
  static auto f = driver::function<Handle>("cuMemRelease");
  return f(handle);
};

int map_all(Pointer range, size_t bytes, const std::vector<Handle>& handles,
            std::vector<double>& us) {
  return timed(static_cast<int>(handles.size()), us,
               [&](int i) { return map(range + i * bytes, bytes, 0, handles[i]); });
}

// In one call, or chunk by chunk where the driver refuses that.
int unmap_range(Pointer range, size_t bytes, int count) {
  int e = unmap(range, bytes * count);
  for (int i = 0; e && i < count; ++i)
    if (int again = unmap(range + i * bytes, bytes)) return again;
  return 0;
}

int all_chunk_costs(size_t bytes, int count, std::vector<double>& us) {
  const size_t all = bytes * count;
  Pointer range = 0;
  std::vector<Handle> handles(count);
  const auto at = [&](int i) { return range + i * bytes; };
  int e = timed(1, us, [&](int) {
    return driver::call("cuMemAddressReserve", &range, all, size_t{0}, Pointer{0}, 0ull);
  });
  e = e ? e : timed(count, us, [&](int i) { return create(&handles[i], bytes); });
  e = e ? e : map_all(range, bytes, handles, us);
  e = e ? e : timed(count, us, [&](int i) { return allow(at(i), bytes); });
  e = e ? e : timed(count, us, [&](int i) { return unmap(at(i), bytes); });
  e = e ? e : map_all(range, bytes, handles, us);
  e = e ? e : timed(1, us, [&](int) { return allow(range, all); });
  e = e ? e : timed(1, us, [&](int) { return unmap_range(range, bytes, count); });
  e = e ? e : timed(count, us, [&](int i) { return release(handles[i]); });
  e = e ? e : timed(1, us, [&](int) { return driver::call("cuMemAddressFree", range, all); });
  return e;
}

int all_event_costs(Stream stream, Stream other, int count, std::vector<double>& us) {
  std::vector<Event> events(count);
  auto make = driver::function<Event*, unsigned>("cuEventCreate");
  auto record = driver::function<Event, Stream>("cuEventRecord");
  auto query = driver::function<Event>("cuEventQuery");
  auto wait = driver::function<Stream, Event, unsigned>("cuStreamWaitEvent");
  auto destroy = driver::function<Event>("cuEventDestroy_v2");
  int e = timed(count, us, [&](int i) { return make(&events[i], 2u); });  // 2: no timing
  e = e ? e : timed(count, us, [&](int i) { return record(events[i], stream); });
  e = e ? e : timed(count, us, [&](int i) { return wait(other, events[i], 0u); });
  e = e ? e : driver::call("cuCtxSynchronize");
  e = e ? e : timed(count, us, [&](int i) { return query(events[i]); });
  e = e ? e : timed(count, us, [&](int i) { return destroy(events[i]); });
  return e;
}
}  // namespace

#define EXPORTED extern "C" __attribute__((visibility("default")))

// A text when the driver can't be used, else null.
EXPORTED const char* open_driver() {
  static std::string why;
  try {
    if (int e = driver::use_context()) why = "the driver's error " + std::to_string(e);
  } catch (const std::exception& error) {
    why = error.what();
  }
  return why.empty() ? nullptr : why.c_str();
}

EXPORTED const char* error_name(int error) {
  const char* name = nullptr;
  driver::call("cuGetErrorName", error, &name);
  return name ? name : "unknown";
}

// recommended: 0 for the minimum, 1 for what is recommended.
EXPORTED int granularity(size_t* bytes, int recommended) {
  return driver::call("cuMemGetAllocationGranularity", bytes, &properties, recommended);
}

EXPORTED int reserve(Pointer* range, size_t bytes) {
  return driver::call("cuMemAddressReserve", range, bytes, size_t{0}, Pointer{0}, 0ull);
}
EXPORTED int unreserve(Pointer range, size_t bytes) {
  return driver::call("cuMemAddressFree", range, bytes);
}
EXPORTED int chunk_create(Handle* handle, size_t bytes) { return create(handle, bytes); }
EXPORTED int chunk_map(Pointer at, size_t bytes, size_t offset, Handle handle) {
  return map(at, bytes, offset, handle);
}
EXPORTED int chunk_allow(Pointer at, size_t bytes) { return allow(at, bytes); }
EXPORTED int chunk_unmap(Pointer at, size_t bytes) { return unmap(at, bytes); }
EXPORTED int chunk_release(Handle handle) { return release(handle); }

EXPORTED int stream_create(Stream* stream, unsigned flags) {
  return driver::call("cuStreamCreate", stream, flags);
}
EXPORTED int device_alloc(Pointer* at, size_t bytes) {
  return driver::call("cuMemAlloc_v2", at, bytes);
}
EXPORTED int device_free(Pointer at) { return driver::call("cuMemFree_v2", at); }

// Means in microseconds: reserve, create, map, access per chunk, unmap per chunk, map again, access
// and unmap in one call over all chunks, release, free of the addresses.
EXPORTED int chunk_costs(size_t bytes, int count, double* us) {
  std::vector<double> means;
  return copied(all_chunk_costs(bytes, count, means), means, us);
}

// Means in microseconds: create, record, make the other stream wait, query of a complete event,
// destroy.
EXPORTED int event_costs(Stream stream, Stream other, int count, double* us) {
  std::vector<double> means;
  return copied(all_event_costs(stream, other, count, means), means, us);
}

// Means in microseconds: alloc and free of `count` blocks.
EXPORTED int malloc_costs(size_t bytes, int count, double* us) {
  std::vector<double> means;
  std::vector<Pointer> blocks(count);
  int e = timed(count, means, [&](int i) { return device_alloc(&blocks[i], bytes); });
  e = e ? e : timed(count, means, [&](int i) { return device_free(blocks[i]); });
  return copied(e, means, us);
}
