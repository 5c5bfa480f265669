#include "progress.h"

#include <algorithm>

namespace gpushare {

namespace {

// Of an iteration like the profiled one, as it is now.
uint64_t profiled_kind_ns(const Account& a) {
  if (a.iteration_kinds.count() == 0) return 0;
  const Curve& c = a.iteration_kinds.kind(0).curve;
  return c.length() ? std::max(c.duration_ns(), c.time(c.length() - 1)) : c.duration_ns();
}

bool waits(const Account& a, const Telemetry& t) {
  auto state = static_cast<State>(t.slot(a.id, kState));
  return a.waiting_threads + a.memory_waits > 0 || state == kAtDoor || state == kWaitingForMemory;
}

}  // namespace

IterationKinds::Times Account::times(uint64_t now_ns) const {
  uint64_t paused = paused_ns + (memory_waits ? now_ns - waiting_since_ns : 0);
  uint64_t elapsed = now_ns - opened_ns, marked = marked_ns.load(std::memory_order_relaxed);
  uint64_t after = marked > opened_ns ? now_ns - std::min(now_ns, marked) : 0;
  return {elapsed - std::min(elapsed, paused), after, started_process};
}

void tell_progress(const Account& a, const Telemetry& t, uint64_t page_bytes, uint64_t now_ns,
                   uint64_t out[GS_PROGRESS_FIGURES]) {
  IterationKinds::Extent usual = a.iteration_kinds.usual();
  double work = a.iteration_kinds.work(a.recorder, a.open, a.times(now_ns));
  const uint64_t figures[GS_PROGRESS_FIGURES] = {t.slot(a.id, kIterations),
                                                 a.open ? a.recorder.ordinal() : 0u,
                                                 a.curve.length(),
                                                 t.slot(a.id, kSoloIterationNs),
                                                 static_cast<uint64_t>(work * 1e6),
                                                 profiled_kind_ns(a),
                                                 usual.pages * page_bytes,
                                                 usual.allocations,
                                                 waits(a, t)};
  std::ranges::copy(figures, out);
}

}  // namespace gpushare
