// The waits that this program makes, as the interpreter's for its lock are: those of the thread
// that runs a script are told, with those apart that no iteration beside others has.
#include <pthread.h>

#include <cerrno>
#include <ctime>
#include <thread>

#include "../src/api.h"
#include "../src/clock.h"
#include "check.h"

using namespace gpushare;

namespace {

constexpr uint64_t kMs = 1000000, kMiB = 1 << 20;

// Until the time is over: nobody signals.
void wait_for_gil(long ms) {
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
  timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_nsec += ms * 1000000;
  until.tv_sec += until.tv_nsec / 1000000000, until.tv_nsec %= 1000000000;
  pthread_mutex_lock(&mutex);
  CHECK(pthread_cond_timedwait(&changed, &mutex, &until) == ETIMEDOUT);
  pthread_mutex_unlock(&mutex);
}

uint64_t told(gs_account job, Slot slot) {
  return runtime()->telemetry().slot(static_cast<uint32_t>(job), slot);
}

void iterate() {
  gs_iteration_mark(gs_thread_account());
  CHECK(gs_iteration_door() == 0);
  gs_free(gs_alloc(kMiB, -1, gs_thread_account(), 0, 0), -1, 0);
}

}  // namespace

int main() {
  wait_for_gil(1);  // nothing watches
  CHECK(gs_gil_waits_watch() > 0 && gs_gil_waits_watch() == 0);
  wait_for_gil(1);  // nothing has started
  gs_config config = {64 * kMiB, 64 << 10, 2 * kMiB, 0, GS_ZICO, -1, 0, -1, 0, GS_HOST, 0, nullptr};
  CHECK(gs_start(&config) == 0);
  wait_for_gil(1);  // of no job
  gs_account job = gs_job_begin(0, 0), other = gs_job_begin(0, 0);
  gs_thread_enter(job, nullptr);
  std::thread worker([&] {
    gs_thread_enter(job, nullptr);
    wait_for_gil(5);
    gs_thread_leave();
  });
  worker.join();
  CHECK(told(job, kGilWaitNs) == 0);  // it may have waited for the script's own thread
  wait_for_gil(20);
  uint64_t set_up = told(job, kGilWaitNs);
  CHECK(set_up >= 19 * kMs && told(job, kGilWaitBeforeNs) == set_up);
  iterate();
  uint64_t start = now_ns();
  wait_for_gil(30);  // in the one that is profiled
  iterate();
  uint64_t took = now_ns() - start, alone = told(job, kGilWaitNs);
  CHECK(alone >= set_up + 29 * kMs && told(job, kGilWaitBeforeNs) == alone);
  CHECK(told(job, kSoloIterationNs) + alone - set_up <= took + kMs);
  wait_for_gil(10);  // in one that is not
  CHECK(told(job, kGilWaitNs) >= alone + 9 * kMs && told(job, kGilWaitBeforeNs) == alone);
  CHECK(told(other, kGilWaitNs) == 0);
  gs_thread_leave();
  puts("gil waits: ok");
}
