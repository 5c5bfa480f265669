// The governor under a virtual clock: jobs without threads, a pool without memory.
//
// Doors, permits, the safety check, waiting, learning and the last resort are the governor's own
// code. Only its sleeping is left out: a job that has to wait is a waiter that is looked at again.
// One thread drives it. Everything is in pages and virtual nanoseconds.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "device.h"
#include "governor.h"

namespace gpushare {

// Addresses that nobody touches. What is copied out is only counted.
class NoDevice : public Device {
 public:
  char* reserve(size_t, size_t page_bytes) override { return reinterpret_cast<char*>(page_bytes); }
  void unmap(char*) override {}
  bool copy_out(char*, size_t) override { return true; }
  bool bring_back(char*, size_t) override { return true; }
};

class Simulation {
 public:
  enum class Answer { kGo, kWaits, kRefused };

  // `device`: another one than NoDevice; it may let time pass (set_time).
  Simulation(Policy policy, uint64_t page_bytes, uint64_t budget_pages, Device* device = nullptr);
  ~Simulation();
  Simulation(const Simulation&) = delete;
  Simulation& operator=(const Simulation&) = delete;

  uint64_t page_bytes() const { return page_bytes_; }
  void set_time(uint64_t now_ns) { now_ns_ = now_ns; }
  uint64_t time() const { return now_ns_; }
  // A job with a curve, or without one (empty): it will be measured alone first. 0: too many jobs.
  uint32_t begin_job(std::vector<uint32_t> held, std::vector<uint64_t> time_ns, uint64_t residue,
                     uint64_t duration_ns = 0);
  // The job's next allocation (or what it frees) makes it hold so many pages.
  Answer hold(uint32_t id, uint64_t pages);
  void free_down_to(uint32_t id, uint64_t pages);
  // An iteration ended; its door is still to come.
  void mark(uint32_t id);
  // And the next one is at the door.
  Answer door(uint32_t id);
  // Of a job that waits: whether it still does. Once it goes on or is refused the wait is over.
  Answer look(uint32_t id);
  uint64_t ready() const;     // bit i: job i waits, and look() will say something else
  void end_job(uint32_t id);  // gives all back
  void tick();                // what the sampler does every 10 ms
  void look_at_doors();       // and when a start is planned: at `next_look`
  uint64_t next_look() const { return governor_->next_look(); }  // kNotPredicted: there is none
  std::string set_budget(uint64_t pages);
  void set_permits(const std::vector<PairPermit>& permits);
  void set_split(uint64_t pages);
  void set_order(Order order, uint64_t quantum_ns);
  void set_rank(uint32_t id, int64_t rank);
  void set_aside(uint64_t accounts);
  uint64_t version();  // of what policies look at
  std::string check();
  const std::string& refusal() const { return refusal_; }
  // The most iterations that one other job began while this one waited at a door.
  uint64_t most_passed(uint32_t id) const { return jobs_[id].most_passed; }
  Governor& governor() { return *governor_; }
  Telemetry& telemetry() { return telemetry_; }

 private:
  using Range = std::pair<PageIndex, uint64_t>;
  struct Job {
    std::unique_ptr<Waiter> waiter;
    std::vector<Range> ranges;  // what it holds, the last taken last
    uint64_t most_passed = 0;
  };

  void take(uint32_t id, uint64_t n);
  void give(uint32_t id, uint64_t n);
  void note(uint32_t id);
  void new_waiter(uint32_t id, uint64_t pages);

  uint64_t now_ns_ = 1;  // 0 stands for never
  uint64_t page_bytes_;
  NoDevice device_;
  Telemetry telemetry_;
  std::unique_ptr<Governor> governor_;
  std::array<Job, kAccounts> jobs_;
  std::string refusal_;
};

}  // namespace gpushare
