#include "lines.h"

#include <dlfcn.h>

#include <array>
#include <cstring>
#include <utility>

#include "../include/gpushare.h"
#include "handlers.h"
#include "python.h"
#include "runtime.h"

namespace gpushare {

namespace {

// Py_tracefunc of Include/cpython/pystate.h, and two of its events.
using TraceFunction = int (*)(void* object, void* frame, int event, void* argument);
constexpr int kLine = 2, kOpcode = 7;

constexpr size_t kWords = 64;  // of PyThreadState, which is larger

struct Interpreter {
  int (*set_trace)(void* thread, TraceFunction, void* object) = nullptr;
  size_t function_at = kWords, object_at = kWords;  // words of PyThreadState
};
Interpreter interpreter;

// Of one job.
struct Line {
  void* thread = nullptr;          // its main one, as Python has it
  TraceFunction before = nullptr;  // what traces it while it is to stop: the object stays as it is
  void* by_opcodes = nullptr;      // a frame in which it stops at any opcode; a reference
};
std::array<Line, GS_MAX_ACCOUNTS> lines;

template <typename Function>
Function* of_python(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, name));
}

template <typename T>
T word(void* thread, size_t at) {
  T value;
  std::memcpy(&value, static_cast<char*>(thread) + at * sizeof(void*), sizeof value);
  return value;
}

// Python's text for who asks what traces the thread (sys.gettrace) is that of the object.
void set(const Line& line, TraceFunction function, void* object) {
  const Python& p = python();
  p.take(object);  // bears a null, and is the thread's own until this is done
  if (interpreter.set_trace(line.thread, function, object) < 0) p.clear();  // an audit hook refuses
  p.release(object);
}

bool set_by_opcodes(void* frame, bool wanted) {
  const Python& p = python();
  if (p.set_attribute(frame, "f_trace_opcodes", wanted ? p.yes : p.no) == 0) return true;
  p.clear();
  return false;
}

// A loop of one instruction (`while True: pass`) comes to no line.
void stop_at_next_opcode(Line& line) {
  auto frame_of = of_python<void*(void*)>("PyThreadState_GetFrame");
  void* frame = line.by_opcodes ? nullptr : frame_of(line.thread);
  if (frame && set_by_opcodes(frame, true))
    line.by_opcodes = frame;
  else
    python().release(frame);
}

void forget_opcodes(Line& line) {
  void* frame = std::exchange(line.by_opcodes, nullptr);
  if (frame) set_by_opcodes(frame, false);
  python().release(frame);
}

int on_trace(void* object, void* frame, int event, void* argument) {
  Line& line = lines[thread_state.account];
  bool ours = event == kOpcode && frame == line.by_opcodes;
  TraceFunction before = ours ? nullptr : line.before;
  bool stops = false;
  if (line.thread && (event == kLine || event == kOpcode)) {
    void* code = python().code_of(frame);
    stops = handlers_at_line(code);
    python().release(code);
  }
  if (stops) {
    set(line, line.before, object);
    forget_opcodes(line);
  }
  if (before && before(object, frame, event, argument) < 0) return -1;
  return !stops || run_handlers_at_line() ? 0 : -1;
}

int no_trace(void*, void*, int, void*) { return 0; }

template <typename T>
size_t find(void* thread, T wanted) {
  size_t found = kWords;
  for (size_t at = 0; at < kWords; ++at) {
    if (word<T>(thread, at) != wanted) continue;
    if (found != kWords) return kWords;  // twice
    found = at;
  }
  return found;
}

}  // namespace

bool begin_lines() {
  if (std::strncmp(of_python<const char*()>("Py_GetVersion")(), "3.11.", 5) != 0) return true;
  interpreter.set_trace = of_python<int(void*, TraceFunction, void*)>("_PyEval_SetTrace");
  if (!interpreter.set_trace) return false;
  // There is no call that tells them: they are found by their values, in a thread that never runs.
  void* state = of_python<void*()>("PyInterpreterState_Get")();
  void* thread = of_python<void*(void*)>("PyThreadState_New")(state);
  void* object = python().make_text("what traces a thread");
  interpreter.set_trace(thread, no_trace, object);
  interpreter.function_at = find(thread, no_trace);
  interpreter.object_at = find(thread, object);
  interpreter.set_trace(thread, nullptr, nullptr);
  of_python<void(void*)>("PyThreadState_Clear")(thread);
  of_python<void(void*)>("PyThreadState_Delete")(thread);
  python().release(object);
  return interpreter.function_at < kWords && interpreter.object_at < kWords;
}

void follow_lines(uint32_t account, bool runs) {
  Line& line = lines[account];
  // What traced it before it was to stop does again: the thread goes on without the job.
  if (line.thread && interpreter.set_trace &&
      word<TraceFunction>(line.thread, interpreter.function_at) == on_trace)
    set(line, line.before, word<void*>(line.thread, interpreter.object_at));
  forget_opcodes(line);
  line = {runs ? python().thread_state() : nullptr, nullptr, nullptr};
}

void stop_at_next_line(uint32_t account) {
  Line& line = lines[account];
  if (!interpreter.set_trace || !line.thread) return;
  auto traces = word<TraceFunction>(line.thread, interpreter.function_at);
  if (traces == on_trace) return stop_at_next_opcode(line);
  line.before = traces;
  set(line, on_trace, word<void*>(line.thread, interpreter.object_at));
}

}  // namespace gpushare
