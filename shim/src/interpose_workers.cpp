// Torch's worker threads see the switches of the thread that they work for: teams of OpenMP
// (libgomp's interface), where a matrix product asks for back ends and precision, say; and the pool
// of tasks, where torch.jit.fork runs operators.
#include <functional>
#include <utility>

#include "runtime.h"
#include "switches.h"
#include "torch_symbols.h"

namespace {
using gpushare::in_torch;
using gpushare::switch_account;
using Body = void (*)(void*);

class Switches {
 public:
  explicit Switches(uint32_t account) : before_(switch_account) { switch_account = account; }
  ~Switches() { switch_account = before_; }
  Switches(const Switches&) = delete;
  Switches& operator=(const Switches&) = delete;

 private:
  uint32_t before_;
};

// A task of the job, until it has ended or thrown: nobody may take away what it computes with.
class Task {
 public:
  explicit Task(std::atomic<uint32_t>& tasks) : tasks_(tasks) {}
  ~Task() { --tasks_; }
  Task(const Task&) = delete;
  Task& operator=(const Task&) = delete;

 private:
  std::atomic<uint32_t>& tasks_;
};

struct Region {
  Body body;
  void* data;
  uint32_t account;
};

void run(void* region) {
  auto* r = static_cast<Region*>(region);
  Switches switches(r->account);
  r->body(r->data);
}
}  // namespace

extern "C" GS_EXPORT void GOMP_parallel(Body body, void* data, unsigned threads, unsigned flags) {
  using Real = void (*)(Body, void*, unsigned, unsigned);
  static const Real real = reinterpret_cast<Real>(in_torch("GOMP_parallel", "OpenMP library"));
  uint32_t account = switch_account;
  if (!account) return real(body, data, threads, flags);
  Region region{body, data, account};  // all have left it when this returns
  real(run, &region, threads, flags);
}

// ATen/Parallel.h
namespace at {
GS_EXPORT void launch(std::function<void()> task) {
  using Real = void (*)(std::function<void()>);
  static const Real real =
      reinterpret_cast<Real>(in_torch("_ZN2at6launchESt8functionIFvvEE", "pool of tasks"));
  uint32_t account = switch_account;
  if (!account) return real(std::move(task));
  gpushare::Runtime* r = gpushare::runtime();
  if (!r) return real(std::move(task));
  std::atomic<uint32_t>& tasks = r->governor().account(account).tasks;
  ++tasks;
  real([task = std::move(task), account, &tasks] {
    Task counted(tasks);
    Switches switches(account);
    task();
  });
}
}  // namespace at
