#include "handlers.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <string>

#include "../include/gpushare.h"
#include "interruption.h"
#include "lines.h"
#include "python.h"
#include "runtime.h"

namespace gpushare {

namespace {

// Of one job.
struct Asked {
  std::atomic<bool> wanted{false};
  std::atomic<pid_t> waits{0};  // the main thread, by the kernel's number, in a wait
};
std::array<Asked, GS_MAX_ACCOUNTS> asked;

// Set once. Never taken down, as threads may run to the end.
struct Calls {
  void *ready, *finished, *forward;
  std::string ours;
};
Calls* calls;

uint32_t led_account() { return thread_state.leads ? thread_state.account : 0; }

// In it nothing is raised in the calling thread from another one.
class HeldBack {
 public:
  HeldBack() : sections_(held_sections(pthread_self())) { hold_back(pthread_self()); }
  ~HeldBack() { let_come(pthread_self(), sections_); }
  HeldBack(const HeldBack&) = delete;

 private:
  int sections_;
};

// What is raised already stays so.
void tell(void* whom, void* what) {
  HeldBack held;
  Raised raised = python().fetch();
  void* answer = python().call(whom, what, nullptr);
  if (!answer) python().print_error(whom);
  python().release(answer);
  python().restore(raised);
}

bool call(void* element, bool traced) {
  const Python& p = python();
  void *handler = p.attribute(element, "handler"), *number = p.attribute(element, "number");
  void* frame = p.current_frame();
  void* result = nullptr;
  if (handler && number) {
    // As it is for what is called between two lines: the job's own tracing sees it, and the next
    // signal comes to it.
    if (traced) p.let_trace(p.thread_state());
    result = p.call(handler, number, frame ? frame : p.none, nullptr);
    if (traced) p.stop_trace(p.thread_state());
  }
  tell(calls->finished, element);
  for (void* each : {handler, number, result}) p.release(each);
  return result;
}

// False: a handler has raised something, or what was sent has come. `ran`: one was called.
bool run(bool traced, bool& ran) {
  const Python& p = python();
  void* waiting = p.call(calls->ready, nullptr);
  bool fine = waiting != nullptr;
  while (fine && waiting != p.none && p.length(waiting) > 0) {
    void* element = p.call_method(waiting, "popleft");
    ran = true;
    fine = element && call(element, traced);
    p.release(element);
  }
  p.release(waiting);
  return fine;
}

// Whether handlers may be called at a line of that code. Not with a lock in hand that other jobs
// may want: a handler may wait for memory.
bool may_call_at(void* code) {
  if (thread_state.collecting || thread_state.no_wait > 0 || held_sections(pthread_self()) > 0)
    return false;
  const Python& p = python();
  void* file = p.attribute(code, "co_filename");
  const char* name = file ? p.text(file, nullptr) : nullptr;
  bool ours = !name || std::strncmp(name, calls->ours.c_str(), calls->ours.size()) == 0;
  if (!name) p.clear();
  p.release(file);
  return !ours;
}

// Called by sys.monitoring, in whichever thread, with the code and more.
void* on_event(void*, void* const* arguments, ptrdiff_t) {
  uint32_t account = led_account();
  bool ran = false;
  if (account && asked[account].wanted && may_call_at(arguments[0]) && !run(true, ran))
    return nullptr;
  python().take(python().none);
  return python().none;
}

}  // namespace

bool handlers_at_line(void* code) { return calls && may_call_at(code); }

bool run_handlers_at_line() {
  bool ran = false;
  return run(true, ran);
}

bool begin_handlers(void* ready, void* finished, void* forward, const char* ours) {
  for (void* each : {ready, finished, forward}) python().take(each);
  calls = new Calls{ready, finished, forward, ours};
  return begin_lines();
}

void follow_handlers(uint32_t account, bool runs) {
  asked[account].wanted = false;
  follow_lines(account, runs);
}

void ask_for_handlers(uint32_t account, bool wanted) {
  asked[account].wanted = wanted;
  if (wanted) stop_at_next_line(account);
}

void* line_callback() { return python().function("on_event", on_event); }

bool run_handlers_before_wait() {
  uint32_t account = led_account();
  if (!account || !asked[account].wanted) return false;
  int kept = errno;
  bool ran = false;
  int state = python().ensure_gil();
  if (asked[account].wanted && held_sections(pthread_self()) == 0 && !run(false, ran)) {
    ran = true;
    Raised raised = python().fetch();
    python().normalize(raised);
    tell(calls->forward, raised.value);
    python().release(raised);
  }
  python().release_gil(state);
  errno = kept;
  return ran;
}

WaitOfMain::WaitOfMain() : account_(led_account()) {
  if (account_) asked[account_].waits = static_cast<pid_t>(syscall(SYS_gettid));
}

WaitOfMain::~WaitOfMain() {
  if (account_) asked[account_].waits = 0;
}

int waits_for_handlers(uint32_t account) {
  return asked[account].wanted ? asked[account].waits.load() : 0;
}

}  // namespace gpushare
