// An allocator for torch.cuda.memory.CUDAPluggableAllocator that writes down each call. With
// THROW_OUT_OF_MEMORY it can throw torch's own error, for which it needs torch's c10 headers.
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <mutex>
#include <new>

#include "driver_api.h"
#ifdef THROW_OUT_OF_MEMORY
#include <c10/util/Exception.h>
#endif

#define EXPORTED extern "C" __attribute__((visibility("default")))

namespace {
enum What : int64_t { Alloc, Free, RecordStream, EmptyCache };
enum Mode { Serve, GiveNull, ThrowBadAlloc, ThrowOutOfMemory };

struct Record {
  int64_t what, bytes, device, thread, gil;
  uint64_t address, stream;
};

constexpr int64_t kRecords = 1 << 16;
Record records[kRecords];
std::atomic<int64_t> seen{0};
std::atomic<int> mode{Serve};

// An arena that is never refilled, for times when the driver can't be asked for memory.
std::mutex arena_lock;
driver::Pointer arena = 0, arena_end = 0, arena_begin = 0;

// 1 or 0; -1 where the interpreter's function is not to be found.
int64_t gil_held() {
  static auto check = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "PyGILState_Check"));
  return check ? check() : -1;
}

void write_down(What what, void* address, int64_t bytes, int64_t device, void* stream) {
  const int64_t at = seen++;
  if (at < kRecords)
    records[at] = {what,
                   bytes,
                   device,
                   syscall(SYS_gettid),
                   gil_held(),
                   reinterpret_cast<uint64_t>(address),
                   reinterpret_cast<uint64_t>(stream)};
}

bool in_arena(void* address) {
  const auto at = reinterpret_cast<driver::Pointer>(address);
  return at >= arena_begin && at < arena_end;
}

void* from_arena(size_t bytes) {
  const std::lock_guard<std::mutex> lock(arena_lock);
  const size_t rounded = (bytes + 511) & ~size_t{511};
  if (arena + rounded > arena_end) return nullptr;
  arena += rounded;
  return reinterpret_cast<void*>(arena - rounded);
}

void* from_driver(size_t bytes) {
  driver::Pointer at = 0;
  if (driver::use_context() || driver::call("cuMemAlloc_v2", &at, bytes ? bytes : 1))
    return nullptr;
  return reinterpret_cast<void*>(at);
}

void refuse(size_t bytes) {
  if (mode == ThrowBadAlloc) throw std::bad_alloc();
#ifdef THROW_OUT_OF_MEMORY
  if (mode == ThrowOutOfMemory)
    TORCH_CHECK_WITH(OutOfMemoryError, false, "CUDA out of memory. Tried to allocate ", bytes,
                     " bytes.");
#else
  (void)bytes;
#endif
}
}  // namespace

EXPORTED void* counted_alloc(size_t bytes, int device, void* stream) {
  if (mode != Serve) {
    write_down(Alloc, nullptr, bytes, device, stream);
    refuse(bytes);
    return nullptr;
  }
  void* address = arena_begin ? from_arena(bytes) : from_driver(bytes);
  write_down(Alloc, address, bytes, device, stream);
  return address;
}

EXPORTED void counted_free(void* address, size_t bytes, int device, void* stream) {
  write_down(Free, address, bytes, device, stream);
  if (address && !in_arena(address))
    driver::call("cuMemFree_v2", reinterpret_cast<driver::Pointer>(address));
}

EXPORTED void counted_record_stream(void* address, void* stream) {
  write_down(RecordStream, address, 0, -1, stream);
}
EXPORTED void counted_empty_cache() { write_down(EmptyCache, nullptr, 0, -1, nullptr); }

EXPORTED void set_mode(int wanted) { mode = wanted; }
EXPORTED int make_arena(size_t bytes) {
  if (int e = driver::use_context()) return e;
  driver::Pointer begin = 0;
  if (int e = driver::call("cuMemAlloc_v2", &begin, bytes)) return e;
  arena = begin;
  arena_end = begin + bytes;
  arena_begin = begin;
  return 0;
}
EXPORTED int64_t record_count() { return seen < kRecords ? seen.load() : kRecords; }
EXPORTED const Record* record_at(int64_t index) { return &records[index]; }
EXPORTED void forget_records() { seen = 0; }
