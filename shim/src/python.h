// What is called of Python, which is not linked: the symbols are looked up. Objects are pointers
// that nobody looks into.
#pragma once

#include <cstddef>

namespace gpushare {

// What is raised in a thread, of which each part is a reference; null: nothing is.
struct Raised {
  void *type = nullptr, *value = nullptr, *traceback = nullptr;
};

using FastFunction = void* (*)(void* self, void* const* arguments, ptrdiff_t n);

struct Python {
  void *none, *yes, *no;
  void* (*call)(void*, ...);  // to a null
  void* (*call_method_objects)(void*, void*, ...);
  void* (*make_text)(const char*);
  void* (*attribute)(void*, const char*);
  int (*set_attribute)(void*, const char*, void*);
  const char* (*text)(void*, ptrdiff_t*);
  ptrdiff_t (*length)(void*);
  void (*take)(void*);
  void (*release_object)(void*);
  void (*fetch_parts)(void**, void**, void**);
  void (*normalize_parts)(void**, void**, void**);
  void (*restore_parts)(void*, void*, void*);
  void (*clear)();
  void (*print_error)(void*);  // which is dropped, as in a finalizer
  void* (*current_frame)();    // borrowed
  void* (*code_of)(void*);
  void* (*thread_state)();
  void (*let_trace)(void*);
  void (*stop_trace)(void*);
  int (*ensure_gil)();
  void (*release_gil)(int);
  void* (*make_function)(void*, void*, void*, void*);
  bool parks_locks;  // of 3.14 on: a lock has a queue of its own

  Raised fetch() const;
  void normalize(Raised&) const;
  void restore(const Raised&) const;  // which is given away
  void release(void* object) const;   // bears a null
  void release(const Raised&) const;
  void* call_method(void* object, const char* name) const;
  void* function(const char* name, FastFunction) const;  // a callable of positional arguments
};

const Python& python();

}  // namespace gpushare
