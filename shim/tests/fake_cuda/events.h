// Events: each is the position of its most recent record. Who waits keeps the position that the
// event had when the wait was issued.
#pragma once

#include "captures.h"

namespace gpushare::fake_cuda {

class Events {
 public:
  Events(Report& report, Streams& streams, Captures& captures)
      : report_(report), streams_(streams), captures_(captures) {}

  CUresult create(CUevent* event, unsigned flags);
  CUresult destroy(CUevent event);
  CUresult record(CUevent event, CUstream stream);
  CUresult query(CUevent event);
  CUresult synchronize(CUevent event);
  CUresult wait(CUstream stream, CUevent event, unsigned flags);

  bool waits_for_memory = false;  // made from now on

 private:
  struct State {
    Position recorded{};
    uint64_t capture = 0;  // in which it was last recorded
  };
  State* find(CUevent event);  // null, with a misuse, if there is no such event

  Report& report_;
  Streams& streams_;
  Captures& captures_;
  static constexpr uint64_t kFirst = 0x45000018, kStep = 0x10;  // never used again
  uint64_t next_ = kFirst;
  std::map<uint64_t, State> all_;
};

}  // namespace gpushare::fake_cuda
