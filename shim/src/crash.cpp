#include "crash.h"

#include <signal.h>
#include <unistd.h>

#include "runtime.h"
#include "switches.h"

namespace gpushare {

namespace {

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

}  // namespace

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
