// Where a thread of Python 3.11 comes to its next line: another thread can set what traces it.
// (From 3.12 on sys.monitoring tells of lines, and Python no longer exports this.)
#pragma once

#include <cstdint>

namespace gpushare {

// With the GIL, as all of it. False: it is not found where Python keeps what traces a thread.
bool begin_lines();
void follow_lines(uint32_t account, bool runs);  // the calling thread is the main one of that job
// To call the job's handlers there; asked again: or before any opcode.
void stop_at_next_line(uint32_t account);

}  // namespace gpushare
