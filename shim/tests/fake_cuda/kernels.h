// What operations do to device memory when they run at last.
#pragma once

#include "memory.h"
#include "operation.h"

namespace gpushare::fake_cuda {

// False, with a misuse: the operation may not touch what it is to touch.
bool may_touch(const Memory&, Report&, const Operation&, const char* when);
void execute(Memory&, Report&, uint64_t stream, const Operation&);

}  // namespace gpushare::fake_cuda
