#include "python.h"

#include <dlfcn.h>

#include <initializer_list>

namespace gpushare {

namespace {

template <typename Function>
void find(Function& function, const char* name) {
  function = reinterpret_cast<Function>(dlsym(RTLD_DEFAULT, name));
}

Python found() {
  Python p = {};
  find(p.none, "_Py_NoneStruct");
  find(p.yes, "_Py_TrueStruct");
  find(p.no, "_Py_FalseStruct");
  find(p.call, "PyObject_CallFunctionObjArgs");
  find(p.call_method_objects, "PyObject_CallMethodObjArgs");
  find(p.make_text, "PyUnicode_FromString");
  find(p.attribute, "PyObject_GetAttrString");
  find(p.set_attribute, "PyObject_SetAttrString");
  find(p.text, "PyUnicode_AsUTF8AndSize");
  find(p.length, "PyObject_Size");
  find(p.take, "Py_IncRef");
  find(p.release_object, "Py_DecRef");
  find(p.fetch_parts, "PyErr_Fetch");
  find(p.normalize_parts, "PyErr_NormalizeException");
  find(p.restore_parts, "PyErr_Restore");
  find(p.clear, "PyErr_Clear");
  find(p.print_error, "PyErr_WriteUnraisable");
  find(p.current_frame, "PyEval_GetFrame");
  find(p.code_of, "PyFrame_GetCode");
  find(p.thread_state, "PyThreadState_Get");
  find(p.let_trace, "PyThreadState_LeaveTracing");
  find(p.stop_trace, "PyThreadState_EnterTracing");
  find(p.ensure_gil, "PyGILState_Ensure");
  find(p.release_gil, "PyGILState_Release");
  find(p.make_function, "PyCMethod_New");
  auto version = static_cast<const unsigned long*>(dlsym(RTLD_DEFAULT, "Py_Version"));
  p.parks_locks = version && *version >= 0x030E0000;
  return p;
}

// Filled when the library is loaded: a static of a function would have a guard, and who waits for
// one gives up the GIL (interpose_guard.cpp).
const Python the_python = found();

}  // namespace

const Python& python() { return the_python; }

Raised Python::fetch() const {
  Raised raised;
  fetch_parts(&raised.type, &raised.value, &raised.traceback);
  return raised;
}

void Python::normalize(Raised& raised) const {
  normalize_parts(&raised.type, &raised.value, &raised.traceback);
}

void Python::restore(const Raised& raised) const {
  restore_parts(raised.type, raised.value, raised.traceback);
}

void Python::release(void* object) const { release_object(object); }

void Python::release(const Raised& raised) const {
  for (void* each : {raised.type, raised.value, raised.traceback}) release(each);
}

void* Python::call_method(void* object, const char* name) const {
  void* text_of_it = make_text(name);
  void* result = text_of_it ? call_method_objects(object, text_of_it, nullptr) : nullptr;
  release(text_of_it);
  return result;
}

void* Python::function(const char* name, FastFunction call) const {
  // As PyMethodDef (Include/methodobject.h), which has to stay: METH_FASTCALL.
  struct Definition {
    const char* name;
    FastFunction call;
    int flags;
    const char* text;
  };
  return make_function(new Definition{name, call, 0x80, nullptr}, nullptr, nullptr, nullptr);
}

}  // namespace gpushare
