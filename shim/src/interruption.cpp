#include "interruption.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <exception>
#include <unordered_map>
#include <utility>

#include "../include/gpushare.h"
#include "handlers.h"

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

// Of one job. Python's lock is held where it is set.
struct Sent {
  std::atomic<unsigned long> thread{0};  // none once it has come
  void* kind = nullptr;  // a reference of its own, until the next one: its making is when it comes
  std::atomic<pid_t> waits{0};  // that thread, by the kernel's number, in a wait that can be cut
  std::atomic<int> cuts{0};     // waits that ended for this since it was sent
};
std::array<Sent, GS_MAX_ACCOUNTS> sent;

// What is held back from a thread, with Python's lock.
struct Held {
  int sections = 0;
  uint32_t account = 0;  // whose main thread it is
  void* last = nullptr;  // a reference
};
// By thread; only of those that are in a section. Never taken down, as threads may run to the end.
auto& held = *new std::unordered_map<unsigned long, Held>;

template <typename Function>
Function* of_python(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, name));
}

void raise_at_next_bytecode(unsigned long thread, void* kind) {
  static const auto set = of_python<int(unsigned long, void*)>("PyThreadState_SetAsyncExc");
  set(thread, kind);
}

void take(void* kind) {
  static const auto increase = of_python<void(void*)>("Py_IncRef");
  increase(kind);
}

// May run code of Python's, and give its lock up.
void drop(void* kind) {
  static const auto decrease = of_python<void(void*)>("Py_DecRef");
  decrease(kind);  // bears a null
}

void send(uint32_t account, unsigned long thread, void* kind) {
  if (!account) return raise_at_next_bytecode(thread, kind);
  Sent& s = sent[account];
  take(kind);
  void* before = std::exchange(s.kind, kind);
  s.cuts = 0;
  s.thread = thread;
  raise_at_next_bytecode(thread, kind);
  drop(before);
}

// Not SIGURG, which Go's runtime sends to itself, nor the last one, which valgrind takes.
int cutting_signal() { return SIGRTMAX - 1; }

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
    raise_at_next_bytecode(s.thread.exchange(0), nullptr);  // it comes here, and once
    return s.kind;
  }

 private:
  uint32_t account_;
};

}  // namespace

void send_interruption(uint32_t account, unsigned long thread, void* kind) {
  auto found = held.find(thread);
  if (found == held.end()) return send(account, thread, kind);
  take(kind);
  found->second.account = account;
  drop(std::exchange(found->second.last, kind));
}

void interruption_came(uint32_t account) { sent[account].thread = 0; }

void hold_back(unsigned long thread) { ++held[thread].sections; }

int held_sections(unsigned long thread) {
  auto found = held.find(thread);
  return found == held.end() ? 0 : found->second.sections;
}

void let_come(unsigned long thread, int sections) {
  auto found = held.find(thread);
  if (found == held.end() || (found->second.sections = sections) > 0) return;
  Held was = found->second;
  held.erase(found);
  if (!was.last) return;
  send(was.account, thread, was.last);
  drop(was.last);
}

void hold_back_alone(unsigned long thread) {
  std::erase_if(held, [thread](const auto& h) { return h.first != thread; });
  for (auto& [_, h] : held) h.last = nullptr;  // it was the parent's, and so stays counted
}

CuttableWait::CuttableWait(uint32_t account, int most_cuts) : account_(account), most_(most_cuts) {
  if (account_) sent[account_].waits = static_cast<pid_t>(syscall(SYS_gettid));
}

CuttableWait::~CuttableWait() {
  if (account_) sent[account_].waits = 0;
}

bool CuttableWait::is_cut() {
  if (!account_) return false;
  Sent& s = sent[account_];
  if (s.thread != pthread_self()) return false;
  if (s.cuts < most_) return true;
  s.waits = 0;  // it is not to be woken again and again
  return false;
}

void CuttableWait::cut() { ++sent[account_].cuts; }

void install_cutting_signal() {
  struct sigaction wanted = {};
  wanted.sa_handler = [](int) {};  // and no SA_RESTART: the wait is to end
  sigaction(cutting_signal(), &wanted, nullptr);
}

void cut_waits() {
  for (uint32_t account = 0; account < GS_MAX_ACCOUNTS; ++account) {
    const Sent& s = sent[account];
    pid_t waits = s.thread ? s.waits.load() : 0;
    if (!waits) waits = waits_for_handlers(account);
    if (waits) syscall(SYS_tgkill, getpid(), waits, cutting_signal());
  }
}

void raise_interruption(uint32_t account, const std::string& text) {
  throw Interruption(account, text);
}

}  // namespace gpushare
