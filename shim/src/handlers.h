// Handlers of signals, run in a job's main thread as the interpreter runs those of a process in
// its own: between two lines of what Python computes there, or in a wait of the interpreter, which
// goes on afterwards. They are asked for from any thread.
#pragma once

#include <cstdint>

namespace gpushare {

// With the GIL, as the next two. Python's side: `ready`, of no arguments, gives a deque of what is
// to be called, or None while nothing may be; each of its elements has `handler` and `number`.
// `finished` is told an element once its handler is through, and `forward` what one has raised in a
// wait, from where nothing can be raised in the script. No handler is called at a line of a file
// whose name begins with `ours`. False: this Python keeps what traces a thread where it is not
// found.
bool begin_handlers(void* ready, void* finished, void* forward, const char* ours);
// The calling thread is the main one of a job that begins (or ends); nothing is asked for yet.
void follow_handlers(uint32_t account, bool runs);
// The job's handlers are to be called (or no longer). Python 3.11 learns of it here; a later one
// is to call `line_callback` with its events.
void ask_for_handlers(uint32_t account, bool wanted);
void* line_callback();  // a Python callable, for sys.monitoring; a new reference

// Called where the thread is between two lines (lines.cpp): whether handlers may be there, and to
// call them. False: something is raised.
bool handlers_at_line(void* code);
bool run_handlers_at_line();

// Before a wait of the interpreter's, without the GIL: calls what is asked for. True: some of that
// has run, so what was waited for may be there, and the time is over that the wait had left.
bool run_handlers_before_wait();

// Such a wait in a job's main thread: what is asked for meanwhile interrupts it, as a signal does.
class WaitOfMain {
 public:
  WaitOfMain();
  ~WaitOfMain();
  WaitOfMain(const WaitOfMain&) = delete;

 private:
  uint32_t account_;
};

// The thread that is to be interrupted now, by the kernel's number; 0: none.
int waits_for_handlers(uint32_t account);

}  // namespace gpushare
