// What runs beside a job that is profiled, so that its time or theirs shows what it takes and what
// it feels: Bubble-Up (Mars et al., MICRO 2011) for memory bandwidth, samples for the GIL.
#include <dlfcn.h>

#include <algorithm>
#include <cstring>

#include "api.h"
#include "clock.h"

namespace {

using gpushare::now_ns;

constexpr uint64_t kPiece = 1 << 20;  // copied at a time: `stop` is looked at in between
constexpr uint64_t kHeldNs = 2000;    // a GIL that is free is taken in a tenth of that

struct Gil {
  int (*ensure)() = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "PyGILState_Ensure"));
  void (*release)(int) = reinterpret_cast<void (*)(int)>(dlsym(RTLD_DEFAULT, "PyGILState_Release"));
};

bool stopped(const int32_t* stop) { return __atomic_load_n(stop, __ATOMIC_RELAXED); }

void sleep_ns(uint64_t ns) {
  timespec time{static_cast<time_t>(ns / 1000000000), static_cast<long>(ns % 1000000000)};
  nanosleep(&time, nullptr);
}

}  // namespace

extern "C" {

void gs_traffic(void* buffer, uint64_t bytes, const int32_t* stop, uint64_t most_ns,
                uint64_t out[2]) {
  uint64_t half = bytes / 2, moved = 0, begin = now_ns(), now = begin;
  char *from = static_cast<char*>(buffer), *to = from + half;
  auto over = [&] { return stopped(stop) || now - begin >= most_ns; };
  while (!over()) {
    for (uint64_t at = 0; at < half && !over(); at += kPiece, now = now_ns()) {
      uint64_t piece = std::min(kPiece, half - at);
      memcpy(to + at, from + at, piece);
      moved += piece;
    }
    std::swap(from, to);
  }
  out[0] = moved;
  out[1] = now - begin;
}

// The looks are at moments that do not depend on what is seen: those that pass while one look waits
// for the GIL see it held too. They keep no step with what an iteration repeats.
int gs_gil_watch(uint64_t every_ns, const int32_t* stop, uint64_t most_ns, uint64_t out[2]) {
  Gil gil;
  if (!gil.ensure || !gil.release) return gpushare::fail("there is no Python in this process");
  uint32_t random = 1;
  auto pause_ns = [&] {
    random = random * 1664525 + 1013904223;
    return every_ns / 2 + every_ns * (random >> 16) / 65536;
  };
  uint64_t looks = 0, held = 0, begin = now_ns();
  for (uint64_t due = begin + pause_ns(); !stopped(stop) && due - begin < most_ns;) {
    uint64_t before = now_ns();
    if (due > before) sleep_ns(due - before);
    uint64_t asked = now_ns();
    int state = gil.ensure();
    uint64_t got = now_ns();
    gil.release(state);
    bool waited = got - asked > kHeldNs;
    for (due = std::max(due, asked); due <= got; due += pause_ns()) {
      ++looks;
      held += waited;
    }
  }
  out[0] = looks;
  out[1] = held;
  return 0;
}

}  // extern "C"
