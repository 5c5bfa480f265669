// Who assigns to a class or to a module. `Class.name = x` and `module.name = x` end in the slot
// tp_setattro of the type of what is assigned to (Include/cpython/object.h). gpushare/native puts
// the two functions below there, which ask Python about assignments of scripts and of nobody else:
// code of shared modules finds the interpreter's own dictionary of builtins, that of a script its
// job's.
#include <dlfcn.h>

#include <cstdint>
#include <unordered_set>

#include "../include/gpushare.h"

namespace {

using Setter = int (*)(void* target, void* name, void* value);

template <typename F>
F in_python(const char* name) {
  return reinterpret_cast<F>(dlsym(RTLD_DEFAULT, name));
}

struct Python {
  void* (*builtins)() = in_python<void* (*)()>("PyEval_GetBuiltins");
  void* (*call)(void*, ...) = in_python<void* (*)(void*, ...)>("PyObject_CallFunctionObjArgs");
  int (*is_true)(void*) = in_python<int (*)(void*)>("PyObject_IsTrue");
  void (*release)(void*) = in_python<void (*)(void*)>("Py_DecRef");
};

// All of it is read and changed with the GIL.
struct Watch {
  Python python;
  void* decide;
  void* deleted;
  void* shared_builtins;
  Setter plain[2];
  std::unordered_set<void*> marked;  // of them Python has split attributes
};

Watch* watch;  // never taken down: threads may assign until the process ends

int assign(void* target, void* name, void* value, Setter plain) {
  const Watch& w = *watch;
  bool is_script = w.python.builtins() != w.shared_builtins;
  if (!is_script && !w.marked.contains(target)) return plain(target, name, value);
  void* answer = w.python.call(w.decide, target, name, value ? value : w.deleted, nullptr);
  if (!answer) return -1;
  bool is_done = w.python.is_true(answer) == 1;
  w.python.release(answer);
  return is_done ? 0 : plain(target, name, value);
}

int assign_to_class(void* target, void* name, void* value) {
  return assign(target, name, value, watch->plain[0]);
}

int assign_to_module(void* target, void* name, void* value) {
  return assign(target, name, value, watch->plain[1]);
}

}  // namespace

extern "C" {

void gs_assignments_watch(void* decide, void* deleted, void* shared_builtins, void* const plain[2],
                          void* watching[2]) {
  if (!watch) watch = new Watch;
  watch->decide = decide;
  watch->deleted = deleted;
  watch->shared_builtins = shared_builtins;
  for (int i = 0; i < 2; ++i) watch->plain[i] = reinterpret_cast<Setter>(plain[i]);
  watching[0] = reinterpret_cast<void*>(assign_to_class);
  watching[1] = reinterpret_cast<void*>(assign_to_module);
}

void gs_assignments_mark(void* target, int32_t delta) {
  if (!watch) return;
  if (delta > 0)
    watch->marked.insert(target);
  else
    watch->marked.erase(target);
}

}  // extern "C"
