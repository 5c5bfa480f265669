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

const Python& python() {
  static const Python* p = new Python;  // never destroyed
  return *p;
}

}  // namespace

GilReleased::GilReleased() {
  const Python& p = python();
  if (p.check && p.running && p.save && p.restore && p.running() && p.check()) state_ = p.save();
}

GilReleased::~GilReleased() {
  if (state_) python().restore(state_);
}

}  // namespace gpushare
