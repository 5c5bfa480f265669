// The begin of a parallel region of OpenMP (libgomp's interface): the threads of the team see the
// switches of the thread that opened it. A matrix product inside one asks for back ends and
// precision, say.
#include "switches.h"
#include "torch_symbols.h"

namespace {
using Body = void (*)(void*);

struct Region {
  Body body;
  void* data;
  uint32_t account;
};

void run(void* region) {
  auto* r = static_cast<Region*>(region);
  uint32_t before = gpushare::switch_account;
  gpushare::switch_account = r->account;
  r->body(r->data);
  gpushare::switch_account = before;
}
}  // namespace

extern "C" GS_EXPORT void GOMP_parallel(Body body, void* data, unsigned threads, unsigned flags) {
  using Real = void (*)(Body, void*, unsigned, unsigned);
  static const Real real =
      reinterpret_cast<Real>(gpushare::in_torch("GOMP_parallel", "OpenMP library"));
  uint32_t account = gpushare::switch_account;
  if (!account) return real(body, data, threads, flags);
  Region region{body, data, account};  // all have left it when this returns
  real(run, &region, threads, flags);
}
