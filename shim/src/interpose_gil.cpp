// What the threads of scripts wait for the interpreter's lock (the GIL), which all jobs of a host
// share. Python waits for it, and for nothing else, in pthread_cond_timedwait, a slice of the
// switch interval at a time (Python/ceval_gil.h); its other locks are semaphores.
#include <dlfcn.h>
#include <pthread.h>

#include <algorithm>

#include "api.h"
#include "calls.h"
#include "clock.h"
#include "cpu_wait.h"

namespace {
using namespace gpushare;

using Wait = decltype(pthread_cond_timedwait);

// The current version of it, where the library has two: without one, the older may be found.
Wait* libc_wait() {
  void* found = dlvsym(RTLD_DEFAULT, "pthread_cond_timedwait", "GLIBC_2.3.2");
  if (!found) found = dlsym(RTLD_DEFAULT, "pthread_cond_timedwait");
  return reinterpret_cast<Wait*>(found);
}

// Of the thread that runs the script: others of a job may wait for that one.
int wait_for_gil(pthread_cond_t* changed, pthread_mutex_t* mutex, const timespec* until) {
  static Wait* const real = libc_wait();
  Runtime* r = thread_state.leads ? active() : nullptr;
  if (!r) return real(changed, mutex, until);
  uint32_t job = thread_state.account;
  // What it waits for a processor is told by itself, in a set-up.
  bool sets_up = r->telemetry().slot(job, kState) == kSetUp;
  uint64_t start = now_ns(), before = sets_up ? waited_for_processor_ns() : 0;
  int result = real(changed, mutex, until);
  uint64_t waited = now_ns() - start;
  if (sets_up) waited -= std::min(waited, waited_for_processor_ns() - before);
  r->telemetry().gil_wait(job, waited);
  return result;
}

}  // namespace

extern "C" int gs_gil_waits_watch(void) {
  // The program is Python itself where it has no library of its own.
  const char* const callers[] = {"", "libpython3"};
  const Redirection waits[] = {{"pthread_cond_timedwait", reinterpret_cast<void*>(wait_for_gil)}};
  return redirect(callers, waits);
}
