// Files that stand for a standard stream, "/dev/stdout" and its kin: where Python opens one for a
// job it is the job's, as its descriptors 0, 1 and 2 are (`isolation/descriptors.py`). So is what a
// file object does to these descriptors that was made with such a number.
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <string_view>

#include "api.h"
#include "calls.h"
#include "runtime.h"

namespace {
using namespace gpushare;

constexpr int kStreams = 3, kNone = -1;
constexpr std::array<std::string_view, kStreams> kNames{"/dev/stdin", "/dev/stdout", "/dev/stderr"};
constexpr std::array<std::string_view, 3> kFolders{"/dev/fd/", "/proc/self/fd/",
                                                   "/proc/thread-self/fd/"};

// By account; one more than the descriptor, so that nought is none.
std::atomic<int> descriptors[kAccounts][kStreams];

int stream_in(std::string_view folder, std::string_view path) {
  if (!path.starts_with(folder) || path.size() != folder.size() + 1) return kNone;
  int number = path.back() - '0';
  return number >= 0 && number < kStreams ? number : kNone;
}

int stream_named(std::string_view path) {
  for (int number = 0; number < kStreams; ++number)
    if (path == kNames[number]) return number;
  for (std::string_view folder : kFolders)
    if (int number = stream_in(folder, path); number != kNone) return number;
  if (!path.starts_with("/proc/")) return kNone;
  char by_process[32];
  int length = snprintf(by_process, sizeof by_process, "/proc/%d/fd/", getpid());
  return stream_in({by_process, static_cast<size_t>(length)}, path);
}

// Found by their names: the shim's own calls are redirected as well where it is linked to a caller.
template <class Call>
Call* real(const char* name) {
  return reinterpret_cast<Call*>(dlsym(RTLD_DEFAULT, name));
}

int open_file(const char* path, int flags, ...) {
  static const auto real_open = real<int(const char*, int, ...)>("open64");
  va_list more;
  va_start(more, flags);
  mode_t mode = va_arg(more, mode_t);  // what is there where none was given is not looked at
  va_end(more);
  uint32_t account = active() ? thread_state.account : 0;
  int number = account && path ? stream_named(path) : kNone;
  int own = number == kNone ? 0 : descriptors[account][number].load(std::memory_order_relaxed);
  if (!own) return real_open(path, flags, mode);
  char instead[32];
  snprintf(instead, sizeof instead, "/proc/self/fd/%d", own - 1);
  return real_open(instead, flags, mode);
}

// The job's descriptor in the place of `file`; kNone: there is none.
int own_of(int file) {
  if (file < 0 || file >= kStreams) return kNone;
  uint32_t account = active() ? thread_state.account : 0;
  return account ? descriptors[account][file].load(std::memory_order_relaxed) - 1 : kNone;
}

ssize_t write_file(int file, const void* from, size_t bytes) {
  static const auto real_write = real<decltype(write)>("write");
  int own = own_of(file);
  return real_write(own == kNone ? file : own, from, bytes);
}

// By their numbers these are nobody's to close, or what is opened next would get them. A file
// object may be closed by the garbage collector, in a thread of another job.
int close_file(int file) {
  static const auto real_close = real<decltype(close)>("close");
  return active() && file >= 0 && file < kStreams ? 0 : real_close(file);
}

}  // namespace

extern "C" int gs_streams_watch(void) {
  const Redirection opens[] = {
      {"open64", reinterpret_cast<void*>(open_file)},
      {"open", reinterpret_cast<void*>(open_file)},
      {"write", reinterpret_cast<void*>(write_file)},
      {"close", reinterpret_cast<void*>(close_file)},
  };
  const char* const callers[] = {"", "libpython3"};
  return redirect(callers, opens);
}

extern "C" void gs_streams_set(gs_account job, const int32_t own[3]) {
  if (!is_job(job)) return;
  for (int number = 0; number < kStreams; ++number)
    descriptors[job][number].store(own ? own[number] + 1 : 0, std::memory_order_relaxed);
}
