#include "crash.h"

#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "runtime.h"
#include "switches.h"

namespace gpushare {

namespace {

constexpr uint64_t kExitOfC = 256;  // in the place of a signal; and the exit status
constexpr int kFatal[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
Telemetry* telemetry = nullptr;
pid_t host = 0;

struct sigaction before[NSIG];

// Only what a signal handler may do. What was there before us follows: mostly the process dies.
void on_crash(int number, siginfo_t*, void*) {
  // A forked child has the same telemetry, and its crash is its own affair.
  if (getpid() == host && !telemetry->header(kCrashSignal)) {
    uint32_t account = thread_state.account ? thread_state.account : switch_account;
    telemetry->header(kCrashAccount, account);
    telemetry->header(kCrashSignal, static_cast<uint64_t>(number));
  }
  sigaction(number, &before[number], nullptr);
  raise(number);
}

// What is registered last runs first: before the destructors of libraries, under which the other
// jobs would crash, whose threads still run.
void on_exit_of_job(int status, void*) {
  if (getpid() != host || !thread_state.account || telemetry->header(kCrashSignal)) return;
  telemetry->header(kCrashAccount, thread_state.account);
  telemetry->header(kCrashSignal, kExitOfC + static_cast<uint64_t>(status & 0xff));
  fflush(nullptr);
  _exit(status);
}

}  // namespace

void watch_exits() {
  static const bool watched = telemetry && on_exit(on_exit_of_job, nullptr) == 0;
  (void)watched;
}

void watch_crashes(Telemetry* of) {
  telemetry = of;
  host = getpid();
  struct sigaction action = {};
  action.sa_sigaction = on_crash;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  for (int number : kFatal) sigaction(number, &action, &before[number]);
}

}  // namespace gpushare
