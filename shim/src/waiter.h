// A thread of a job that waits: at its door, or for memory. The governor has it in one of two
// lists.
#pragma once

#include <condition_variable>
#include <cstdint>

#include "decisions.h"
#include "telemetry.h"

namespace gpushare {

struct Waiter {
  uint32_t id;
  uint64_t pages;  // 0: at the door
  uint64_t since_ns;
  uint64_t copying_before_ns = 0;        // all that had been copied out and back until then
  uint64_t granted_ns = 0;               // or when the free began that made room for it
  uint64_t woken_ns = 0;                 // its thread runs again, and goes for the GIL
  uint64_t starts_seen[kAccounts] = {};  // starts of others since this one asked
  bool done = false, refused = false, no_wait = false;
  bool interrupted = false;  // the job's waits were ended meanwhile, whatever it does since
  State before = kEmpty;     // what the job did when it began to wait for memory
  bool first = false;        // of the job's threads at the door
  uint64_t judged_at = 0;    // the moment that `has_place` is of
  bool has_place = false;
  WaitReasons reasons;
  uint64_t predicted_ns = kNotPredicted;  // that it will wait
  uint64_t misfit = 0;  // who was under way, and how far, when it was last forecast not to fit
  bool plans = false;   // its start; else it waits for an event
  uint64_t look_ns = kNotPredicted;  // when that is planned for
  uint64_t planned_for = 0;          // what kept it then, and beside whom
  uint64_t in_vain = 0;              // how long until the next look at least
  std::condition_variable wake;
};

// Where a thread rests. In a library native code of the job is under way around it, and goes on
// when it wakes while another job forks, as does who was held for that for long; who waits for its
// turn to fork is counted among those that wait.
enum class Rest { kInPython, kInLibrary, kForItsTurnToFork, kHeldForLong };

// Of a thread that waits until it may fork, or start a process, or until another one has.
struct ForkWait {
  uint64_t since_ns = 0;
  bool pauses = false;  // nothing else of its job computed when it began
  uint32_t by = 0;      // account that it waits for
};

}  // namespace gpushare
