// What is sent to a job's main thread, Ctrl-C for one. While that waits for memory it is raised at
// the line that waits, in place of an error that this could not be given. And it ends waits of the
// interpreter, as a signal does that plain python's main thread gets.
#pragma once

#include <cstdint>
#include <string>

namespace gpushare {

// With the GIL: raises `kind`, a class, in that thread, as PyThreadState_SetAsyncExc does, or where
// its wait is ended; in place of what was sent to it last. Of a job: in its main thread; 0: in any.
// What holds it back keeps the last one.
void send_interruption(uint32_t account, unsigned long thread, void* kind);
void interruption_came(uint32_t account);

// With the GIL, and in one call of C each, so that nothing comes between: one more section in which
// nothing is raised in that thread, in how many it is, and that it is in so many only from now on.
void hold_back(unsigned long thread);
int held_sections(unsigned long thread);
void let_come(unsigned long thread, int sections);
void hold_back_alone(unsigned long thread);  // a forked child has this thread only

// A wait of the interpreter's, without the GIL, in a job's main thread. What was sent to that comes
// as soon as the interpreter goes on, so the wait ends, as if it were over. Where that goes on to
// wait instead, no more than so many end for what was sent.
class CuttableWait {
 public:
  CuttableWait(uint32_t account, int most_cuts);  // 0: none
  ~CuttableWait();
  CuttableWait(const CuttableWait&) = delete;
  bool is_cut();
  void cut();  // it ends for that

 private:
  uint32_t account_;
  int most_;
};

void install_cutting_signal();  // before any of these

// By the sampler, again and again: a signal that comes before the wait has begun ends nothing.
void cut_waits();

// As an exception that torch raises by what the job was sent, if it comes to the thread that this
// was sent to; else as RuntimeError with `text`.
[[noreturn]] void raise_interruption(uint32_t account, const std::string& text);

}  // namespace gpushare
