#include "gil.h"

#include <dlfcn.h>

namespace gpushare {

namespace {

struct Python {
  int (*check)() = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "PyGILState_Check"));
  int (*running)() = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "Py_IsInitialized"));
  void* (*save)() = reinterpret_cast<void* (*)()>(dlsym(RTLD_DEFAULT, "PyEval_SaveThread"));
  void (*restore)(void*) = reinterpret_cast<void (*)(void*)>(dlsym(RTLD_DEFAULT,
                                                                   "PyEval_RestoreThread"));
};

// Filled when the library is loaded, and never taken down. A static of a function would have a
// guard, and who waits for a guard comes here (interpose_guard.cpp).
const Python python;

}  // namespace

bool holds_gil() {
  const Python& p = python;
  return p.check && p.running && p.save && p.restore && p.running() && p.check();
}

GilReleased::GilReleased() {
  if (holds_gil()) state_ = python.save();
}

GilReleased::~GilReleased() {
  if (state_) python.restore(state_);
}

}  // namespace gpushare
