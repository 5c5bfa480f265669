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

void tell_progress(const Account& a, const Telemetry& t, uint64_t page_bytes,
                   uint64_t out[GS_PROGRESS_FIGURES]) {
  IterationKinds::Extent usual = a.iteration_kinds.usual();
  const uint64_t figures[GS_PROGRESS_FIGURES] = {
      t.slot(a.id, kIterations),
      a.open ? a.recorder.ordinal() : 0u,
      a.curve.length(),
      t.slot(a.id, kSoloIterationNs),
      static_cast<uint64_t>(a.iteration_kinds.work(a.recorder, a.open) * 1e6),
      profiled_kind_ns(a),
      usual.pages * page_bytes,
      usual.allocations,
      waits(a, t)};
  std::ranges::copy(figures, out);
}

}  // namespace gpushare
