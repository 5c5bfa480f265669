// What every entry point does before its own work.
#pragma once

#include "machine.h"

namespace gpushare::fake_cuda {

inline CUresult begin_call(Locked& machine, EntryPoint e) {
  auto i = static_cast<unsigned>(e);
  const char* name = entry_point_names()[i];
  ++machine->report.counters.calls[i];
  CUresult ordered;
  if (machine->faults.take(e, &ordered)) return ordered;
  if (!machine->contexts.initialized && !works_before_init(e))
    return machine->report.misuse(CUDA_ERROR_NOT_INITIALIZED, std::string(name) + " before cuInit");
  if (needs_context(e))
    if (auto wrong = machine->contexts.check(machine.thread(), name)) return wrong;
  if (unsafe_while_capturing(e))
    return machine->captures.unsafe_call(machine.thread().capture_mode);
  return CUDA_SUCCESS;
}

// work(machine, the calling thread's state) does the rest.
template <class Work>
CUresult call(EntryPoint e, Work work) {
  Locked machine;
  if (auto wrong = begin_call(machine, e)) return wrong;
  return work(*machine, machine.thread());
}

}  // namespace gpushare::fake_cuda
