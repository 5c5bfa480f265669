#include "sampler.h"

#include <pthread.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <mutex>
#include <thread>
#include <vector>

#include "clock.h"
#include "interruption.h"
#include "runtime.h"

namespace gpushare {

namespace {

constexpr uint64_t kSliceNs = 10000000, kAdvanceShare = 2;  // half of a slice, or of a fair part
constexpr uint64_t kLeastNs = 1000000;                      // between two, if one takes long

struct Worker {
  pthread_t thread;
  clockid_t clock;
  uint32_t account;
  uint64_t seen_ns;
};

struct Workers {
  std::mutex mutex;
  std::vector<Worker> all;
};

Workers& workers() {
  static auto* w = new Workers;  // never destroyed
  return *w;
}

uint64_t read_clock(clockid_t clock) {
  timespec t;
  if (clock_gettime(clock, &t) != 0) return 0;
  return static_cast<uint64_t>(t.tv_sec) * 1000000000u + static_cast<uint64_t>(t.tv_nsec);
}

// CPU time of each account's threads since the last call.
void cpu_since(uint64_t (&spent)[kAccounts]) {
  std::lock_guard lock(workers().mutex);
  for (Worker& w : workers().all) {
    uint64_t now = read_clock(w.clock);
    if (now > w.seen_ns) spent[w.account] += now - w.seen_ns, w.seen_ns = now;
  }
}

// Whether the job's iteration computed in a slice, or for as much of it as its part of the
// processors was, where more iterations are under way than there are processors.
bool advances(uint64_t spent_ns, uint64_t slice_ns, uint64_t under_way) {
  static const uint64_t processors = std::max(1u, std::thread::hardware_concurrency());
  return spent_ns * kAdvanceShare * std::max(under_way, processors) >= slice_ns * processors;
}

void sample(Runtime& r, uint64_t slice_ns) {
  uint64_t spent[kAccounts] = {};
  cpu_since(spent);
  Telemetry& t = r.telemetry();
  uint32_t advancing = 0, past_profile = 0;
  std::vector<uint32_t> under_way;
  bool on_gpu = r.governor().asynchronous();
  uint64_t jobs = t.header(kJobs);
  for (uint32_t a = 1; a <= jobs; ++a) {
    t.add(a, kCpuNs, spent[a]);
    bool profiled = t.slot(a, kProfiled) && t.slot(a, kState) != kEnded;
    past_profile += profiled;
    // A GPU computes while the job's CPU sleeps, and the CPU may turn while the GPU waits.
    if ((on_gpu || spent[a]) && r.governor().iterating_past_profile(a, on_gpu))
      under_way.push_back(a);
  }
  for (uint32_t a : under_way)
    advancing += on_gpu || advances(spent[a], slice_ns, under_way.size());
  if (past_profile >= 2) t.header(kEligibleNs, t.header(kEligibleNs) + slice_ns);
  if (advancing >= 2) t.header(kOverlapNs, t.header(kOverlapNs) + slice_ns);
}

void run(Runtime* r, int32_t parent_pid) {
  for (uint64_t last = now_ns();;) {
    r->governor().look_at_doors_until(std::max(last + kSliceNs, now_ns() + kLeastNs));
    uint64_t now = now_ns();
    sample(*r, now - last);
    r->tick();
    cut_waits();
    r->governor().flush_logs();
    r->telemetry().header(kTickNs, now);
    last = now;
    // No Python is needed to notice, so a job that holds the GIL for minutes can't delay it.
    if (parent_pid && getppid() != parent_pid) kill(0, SIGKILL);
  }
}

void remove_self() {
  pthread_t me = pthread_self();
  std::erase_if(workers().all, [me](const Worker& w) { return pthread_equal(w.thread, me); });
}

}  // namespace

void sampler_enter(uint32_t account) {
  Worker w{pthread_self(), {}, account, 0};
  if (pthread_getcpuclockid(w.thread, &w.clock) != 0) return;
  w.seen_ns = read_clock(w.clock);
  std::lock_guard lock(workers().mutex);
  remove_self();  // it may have worked for another job
  workers().all.push_back(w);
}

void sampler_leave() {
  std::lock_guard lock(workers().mutex);
  remove_self();
}

void sampler_start(Runtime* runtime, int32_t parent_pid) {
  install_cutting_signal();
  // Signals are the main thread's: Python's handlers set flags there.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread(run, runtime, parent_pid).detach();
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace gpushare
