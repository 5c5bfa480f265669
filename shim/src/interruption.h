// What is sent to a job's main thread, Ctrl-C for one, while that waits for memory: it is raised at
// the line that waits, in place of an error that this could not be given.
#pragma once

#include <cstdint>
#include <string>

namespace gpushare {

// With the GIL: raises `kind`, a class, in that thread of the job, in place of what was sent last,
// as PyThreadState_SetAsyncExc does, or where its wait is ended.
void send_interruption(uint32_t account, unsigned long thread, void* kind);
void interruption_came(uint32_t account);

// As an exception that torch raises by what the job was sent, if it comes to the thread that this
// was sent to; else as RuntimeError with `text`.
[[noreturn]] void raise_interruption(uint32_t account, const std::string& text);

}  // namespace gpushare
