// What must be done on the device before pages that were just held are used. The pool notes it with
// the governor's lock in hand, and whoever holds the pages does it with none (Governor::perform).
#pragma once

#include <vector>

#include "fences.h"
#include "frames.h"

namespace gpushare {

struct DeviceWork {
  static constexpr size_t kFewMappings = 8;

  struct Mapping {
    PageIndex page;
    Frame frame;
    bool create;  // the frame does not exist yet
    bool unmap;   // another one lies there
  };
  struct Fence {
    uint32_t account;
    Batch batch;
  };
  std::vector<Mapping> mappings;
  std::vector<Fence> before_unmapping;  // on the CPU: nobody may use the address any more
  std::vector<Fence> waits;             // on the device, for whoever used the memory before
  std::vector<PageIndex> unready;       // for whose memory the waits are

  bool empty() const { return mappings.empty() && waits.empty(); }
  bool is_for(PageIndex page) const;
  // Whether Governor::perform may keep its thread for long: it waits for the device, or calls the
  // driver for many pages (of which one took 34 us on an H200). To have a stream wait is quick, but
  // an event may have to be recorded for it, or another thread may just do so: where a stream has
  // all the work that it can take, the driver keeps who records one, which a callback on the device
  // that wants the GIL would end.
  bool takes_long() const {
    return !before_unmapping.empty() || !waits.empty() || mappings.size() > kFewMappings;
  }
  void wait_for(uint32_t account, Batch batch);
  void merge(DeviceWork&& other);
  // Takes out what is for these pages. The waits stay, until nothing is left that they are for.
  DeviceWork extract(PageIndex first, uint64_t n);
};

}  // namespace gpushare
