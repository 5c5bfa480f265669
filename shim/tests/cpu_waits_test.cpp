// A script's thread that shares the processors with others while it sets up is told how long it
// could have run and did not: alone it would have taken so much less.
#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "../src/api.h"
#include "../src/clock.h"
#include "../src/cpu_wait.h"
#include "check.h"

using namespace gpushare;

namespace {

constexpr uint64_t kMs = 1000000, kMiB = 1 << 20;

uint64_t told(gs_account job) {
  return runtime()->telemetry().slot(static_cast<uint32_t>(job), kCpuWaitBeforeNs);
}

void compute_until(uint64_t end) {
  while (now_ns() < end) {
  }
}

// Of a thread that has begun just now. Its first mark is the end of its set-up.
void sets_up(gs_account job) {
  gs_thread_enter(job, nullptr);
  compute_until(now_ns() + 300 * kMs);
  uint64_t waited = waited_for_processor_ns();
  gs_iteration_mark(job);
  uint64_t set_up = told(job);
  CHECK(set_up >= waited && set_up <= waited_for_processor_ns());
  CHECK(gs_iteration_door() == 0);
  compute_until(now_ns() + 100 * kMs);
  gs_iteration_mark(job);
  CHECK(told(job) == set_up || set_up == 0);
  gs_thread_leave();
}

}  // namespace

int main() {
  gs_config config = {64 * kMiB, 64 << 10, 2 * kMiB, 0, GS_ZICO, -1, 0, -1, 0, GS_HOST, 0, nullptr};
  CHECK(gs_start(&config) == 0);
  gs_account job = gs_job_begin(0, 0), other = gs_job_begin(0, 0);
  std::atomic<bool> over{false};
  std::vector<std::thread> busy;
  for (unsigned n = 0; n < 2 * std::max(1u, std::thread::hardware_concurrency()); ++n)
    busy.emplace_back([&] {
      while (!over) {
      }
    });
  std::thread script(sets_up, job);
  script.join();
  over = true;
  for (auto& thread : busy) thread.join();
  CHECK(told(job) > 20 * kMs || waited_for_processor_ns() == 0);  // some kernels do not count
  CHECK(told(other) == 0);
  puts("cpu waits: ok");
}
