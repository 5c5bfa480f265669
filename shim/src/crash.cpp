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

// Only what a signal handler may do. The default action follows: the process dies of the signal.
void on_crash(int number, siginfo_t*, void*) {
  // A forked child has the same telemetry, and its crash is its own affair.
  if (getpid() == host && !telemetry->header(kCrashSignal)) {
    uint32_t account = thread_state.account ? thread_state.account : switch_account;
    telemetry->header(kCrashAccount, account);
    telemetry->header(kCrashSignal, static_cast<uint64_t>(number));
  }
  signal(number, SIG_DFL);
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
  for (int number : kFatal) {
    struct sigaction before;
    // Whoever handles it already knows why.
    if (sigaction(number, nullptr, &before) == 0 && before.sa_handler == SIG_DFL)
      sigaction(number, &action, nullptr);
  }
}

}  // namespace gpushare
