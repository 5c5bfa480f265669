// The C API of kinds of iterations: for profiles that are kept.
#include <algorithm>
#include <string>
#include <vector>

#include "api.h"

using namespace gpushare;

static_assert(GS_MOST_KINDS == IterationKinds::kMost && GS_KIND_STEPS == Forecast::kSteps);

namespace {

void tell(const IterationKinds::Kind& kind, uint64_t page_bytes, gs_kind* out) {
  const Forecast& f = kind.forecast;
  out->allocations = kind.curve.length();
  out->residue_bytes = kind.curve.residue() * page_bytes;
  out->duration_ns = f.time(f.length());
  out->seen = kind.seen - kind.seen_before;
  for (uint32_t i = 0; i < IterationKinds::kMost; ++i)
    out->followed_by[i] = kind.followed_by[i] - kind.followed_before[i];
  out->steps = f.length();
  for (uint32_t i = 0; i < f.length(); ++i) {
    out->ordinal[i] = f.ordinal(i);
    out->held_bytes[i] = f.held(i) * page_bytes;
    out->time_ns[i] = f.time(i);
  }
}

// Why there is no such kind; null if there is.
const char* what_is_wrong(const gs_kind& kind) {
  if (kind.steps == 0 || kind.steps > GS_KIND_STEPS) return "a kind has 1 to 128 steps";
  if (kind.allocations > Recorder::kCapacity || kind.ordinal[kind.steps - 1] >= kind.allocations)
    return "a step of a kind begins behind its last allocation";
  if (kind.ordinal[0] != 0) return "the first step of a kind begins at its first allocation";
  for (uint64_t i = 1; i < kind.steps; ++i)
    if (kind.ordinal[i] <= kind.ordinal[i - 1] || kind.time_ns[i] < kind.time_ns[i - 1])
      return "the steps of a kind are in order";
  return nullptr;
}

Curve curve_of(const gs_kind& kind, uint64_t page_bytes) {
  std::vector<uint32_t> held(kind.allocations);
  std::vector<uint64_t> time_ns(kind.allocations);
  for (uint64_t i = 0; i < kind.steps; ++i) {
    uint64_t end = i + 1 < kind.steps ? kind.ordinal[i + 1] : kind.allocations;
    auto pages = static_cast<uint32_t>((kind.held_bytes[i] + page_bytes - 1) / page_bytes);
    for (uint64_t k = kind.ordinal[i]; k < end; ++k) held[k] = pages, time_ns[k] = kind.time_ns[i];
  }
  Curve curve;
  curve.set(std::move(held), std::move(time_ns), (kind.residue_bytes + page_bytes - 1) / page_bytes,
            kind.duration_ns);
  curve.came_in_steps({kind.ordinal, kind.ordinal + kind.steps});
  return curve;
}

}  // namespace

extern "C" {

int gs_kind_get(gs_account job, uint32_t index, gs_kind* out) {
  Runtime* r = active();
  if (!r || !is_job(job)) return fail("no such job");
  bool found = false;
  r->governor().inspect(static_cast<uint32_t>(job), [&](const Account& a) {
    found = index < a.iteration_kinds.count();
    if (found) tell(a.iteration_kinds.kind(index), r->governor().pool().page_bytes(), out);
  });
  return found ? 0 : fail("no such kind");
}

int gs_kind_add(gs_account job, const gs_kind* kind) {
  Runtime* r = active();
  if (!r || !is_job(job)) return fail("no such job");
  if (const char* wrong = what_is_wrong(*kind)) return fail(wrong);
  r->governor().add_kind(static_cast<uint32_t>(job),
                         curve_of(*kind, r->governor().pool().page_bytes()), kind->seen,
                         kind->followed_by);
  return 0;
}

}  // extern "C"
