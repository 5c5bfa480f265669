#include "interruption.h"

#include <dlfcn.h>
#include <pthread.h>

#include <array>
#include <exception>
#include <utility>

#include "../include/gpushare.h"

// torch/csrc/Exceptions.h: what derives from it torch raises by the type that it names, with the
// GIL. The two are one to the C++ runtime, which compares names.
namespace torch {
struct __attribute__((visibility("hidden"))) PyTorchError : std::exception {
  explicit PyTorchError(std::string text) : msg(std::move(text)) {}
  virtual void* python_type() = 0;
  const char* what() const noexcept override { return msg.c_str(); }
  std::string msg;
};
}  // namespace torch

namespace gpushare {

namespace {

// Of one job. Python's lock is held where it is used.
struct Sent {
  unsigned long thread = 0;  // none once it has come
  void* kind = nullptr;  // a reference of its own, until the next one: its making is when it comes
};
std::array<Sent, GS_MAX_ACCOUNTS> sent;

template <typename Function>
Function* of_python(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, name));
}

void raise_at_next_bytecode(unsigned long thread, void* kind) {
  static const auto set = of_python<int(unsigned long, void*)>("PyThreadState_SetAsyncExc");
  set(thread, kind);
}

void keep(Sent& s, unsigned long thread, void* kind) {
  static const auto take = of_python<void(void*)>("Py_IncRef");
  static const auto drop = of_python<void(void*)>("Py_DecRef");
  take(kind);
  s.thread = thread;
  drop(std::exchange(s.kind, kind));  // bears a null
}

void* runtime_error() {
  static const auto at = static_cast<void**>(dlsym(RTLD_DEFAULT, "PyExc_RuntimeError"));
  return *at;
}

class Interruption : public torch::PyTorchError {
 public:
  Interruption(uint32_t account, std::string text)
      : PyTorchError(std::move(text)), account_(account) {}

  // The autograd engine gives an exception of one of its threads to the one that waits for it.
  void* python_type() override {
    Sent& s = sent[account_];
    if (s.thread != pthread_self()) return runtime_error();
    raise_at_next_bytecode(std::exchange(s.thread, 0), nullptr);  // it comes here, and once
    return s.kind;
  }

 private:
  uint32_t account_;
};

}  // namespace

void send_interruption(uint32_t account, unsigned long thread, void* kind) {
  keep(sent[account], thread, kind);
  raise_at_next_bytecode(thread, kind);
}

void interruption_came(uint32_t account) { sent[account].thread = 0; }

void raise_interruption(uint32_t account, const std::string& text) {
  throw Interruption(account, text);
}

}  // namespace gpushare
