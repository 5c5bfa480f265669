// Why jobs wait: a record of each wait, written to a file when it is over. The layout is the same
// as in gpushare/telemetry/decisions.py.
#pragma once

#include <array>
#include <cstdint>

#include "record_file.h"
#include "telemetry.h"

namespace gpushare {

// What keeps a door shut, or a step waiting; and of whom it is.
struct Shut {
  Why why = kNothing;
  uint32_t by = 0;
  explicit operator bool() const { return why != kNothing; }
  bool operator==(const Shut&) const = default;
};

// For how long a waiter was kept by what.
class WaitReasons {
 public:
  void begin(uint64_t now_ns, Shut shut) { since_ns_ = now_ns, shut_ = shut; }
  // The same as before costs nothing; `clock` is called if it is not.
  template <class Clock>
  void note(Shut shut, Clock clock) {
    if (shut == shut_) return;
    end(clock());
    shut_ = shut;
  }
  void end(uint64_t now_ns);
  uint64_t ns(Why why) const { return ns_[why]; }
  uint64_t since_ns() const { return since_ns_; }  // for what keeps it now
  Why why() const { return shut_.why; }
  Shut longest() const;

 private:
  Shut shut_;
  uint64_t since_ns_ = 0;
  struct By {
    uint32_t account = 0;
    uint64_t ns = 0;
  };
  std::array<uint64_t, kWhys> ns_ = {};
  std::array<By, kWhys> by_ = {};  // whose was the longest time without a change, if anybody's
};

constexpr uint64_t kNotPredicted = UINT64_MAX;

struct Decision {
  uint64_t asked_ns, waited_ns, predicted_ns;
  uint64_t bytes;  // that it waited for; 0: at its door
  uint32_t iteration;
  uint8_t account, by;
  Why why;
  uint8_t refused;
};
static_assert(sizeof(Decision) == 40);

using DecisionLog = RecordFile<Decision>;

}  // namespace gpushare
