#include "entry_points.h"

#include <cstring>

namespace gpushare::fake_cuda {

const char* const* entry_point_names() {
  static const char* const names[] = {
#define NAME(name, parameters) #name,
      GPUSHARE_CUDA_ENTRY_POINTS(NAME)
#undef NAME
          nullptr};
  return names;
}

bool find_entry_point(const char* name, EntryPoint* found) {
  for (unsigned i = 0; i < kEntryPoints; ++i) {
    if (strcmp(name, entry_point_names()[i]) != 0) continue;
    *found = static_cast<EntryPoint>(i);
    return true;
  }
  return false;
}

bool works_before_init(EntryPoint e) {
  return e == EntryPoint::cuInit || e == EntryPoint::cuDriverGetVersion ||
         e == EntryPoint::cuGetErrorName || e == EntryPoint::cuGetErrorString;
}

bool needs_context(EntryPoint e) {
  switch (e) {
    case EntryPoint::cuCtxSynchronize:
    case EntryPoint::cuMemGetInfo_v2:
    case EntryPoint::cuMemcpyDtoH_v2:
    case EntryPoint::cuMemcpyHtoD_v2:
    case EntryPoint::cuMemcpyDtoHAsync_v2:
    case EntryPoint::cuMemcpyHtoDAsync_v2:
    case EntryPoint::cuMemsetD8Async:
    case EntryPoint::cuStreamCreate:
    case EntryPoint::cuStreamCreateWithPriority:
    case EntryPoint::cuStreamDestroy_v2:
    case EntryPoint::cuStreamQuery:
    case EntryPoint::cuStreamSynchronize:
    case EntryPoint::cuStreamWaitEvent:
    case EntryPoint::cuEventCreate:
    case EntryPoint::cuEventDestroy_v2:
    case EntryPoint::cuEventRecord:
    case EntryPoint::cuEventSynchronize:
      return true;
    default:
      return false;
  }
}

bool unsafe_while_capturing(EntryPoint e) {
  switch (e) {
    case EntryPoint::cuCtxSynchronize:
    case EntryPoint::cuStreamQuery:
    case EntryPoint::cuStreamSynchronize:
    case EntryPoint::cuEventQuery:
    case EntryPoint::cuEventSynchronize:
    case EntryPoint::cuMemcpyDtoH_v2:
    case EntryPoint::cuMemcpyHtoD_v2:
    // The documentation names only cudaMalloc; these take and give memory too, so a caller that
    // relaxes the thread's mode around them is right with any driver.
    case EntryPoint::cuMemCreate:
    case EntryPoint::cuMemRelease:
    case EntryPoint::cuMemMap:
    case EntryPoint::cuMemUnmap:
    case EntryPoint::cuMemSetAccess:
      return true;
    default:
      return false;
  }
}

void Faults::order(EntryPoint e, uint64_t nth, CUresult result) {
  auto i = static_cast<unsigned>(e);
  ordered_[i][calls_[i] + nth] = result;
}

bool Faults::take(EntryPoint e, CUresult* result) {
  auto i = static_cast<unsigned>(e);
  auto ordered = ordered_[i].find(++calls_[i]);
  if (ordered == ordered_[i].end()) return false;
  *result = ordered->second;
  return true;
}

}  // namespace gpushare::fake_cuda
