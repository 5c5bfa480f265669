// A job's books, and those of what no job owns: what it holds, how far it is, and what is known of
// its iterations. The governor keeps them; heaps count into them.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <vector>

#include "allocation_log.h"
#include "curve.h"
#include "evaluation.h"
#include "fences.h"
#include "forecast.h"
#include "iteration_kinds.h"
#include "kinds.h"
#include "segments.h"
#include "telemetry.h"
#include "trace.h"
#include "usage.h"

namespace gpushare {

// Where a job's next allocation finds the end of an iteration.
enum class Stop : uint8_t {
  kNowhere,
  kWhereMemoryFell,  // no graph so far: maybe at the end of a batch that it evaluates
  kHere,             // at its door
};

// When a job may start beside an iteration of another one: once that has made so many allocations,
// and, where it is by forecast, as soon as it fits with all that are under way.
struct Permit {
  bool valid = false;
  uint64_t made = 0, shift_ns = 0;
  bool by_forecast = false;
};
constexpr uint64_t kNever = UINT64_MAX;  // as `made`: not while that iteration is open

struct PairPermit {
  uint32_t id, after;
  Permit permit;
};

struct Span;

// A block that other streams use too.
struct UsedElsewhere {
  Span* span;
  Batch freed;  // 0: not yet
};

// One of these that was freed in the batch, if it is still what lies there.
struct FreedElsewhere {
  void* address;
  Batch batch;
};

// Where the heap put a block: what it makes of its kind. Small blocks and extents keep off the
// pages of others, so there it does not matter.
enum Lies : uint8_t { kAmongPersistent, kAmongTransient, kInExtent, kPlaces, kInSlab = kPlaces };

struct Account {
  std::mutex heaps;  // guards the heaps of the account, and changes of what they count:
  std::atomic<int64_t> live{0}, live_peak{0};  // bytes of blocks handed out
  std::atomic<int64_t> live_at[kPlaces] = {};  // of these, by where they lie; the rest in slabs
  std::atomic<int64_t> reserved{0};            // bytes of addresses that are its own
  std::atomic<uint64_t> allocations{0}, frees{0};
  // What its allocations cost on the device: pages put behind other addresses, and waits.
  std::atomic<uint64_t> mappings{0}, device_waits{0}, cpu_waits{0};
  std::atomic<uint64_t> bad_frees{0};  // by its threads, of what is no block
  BlockUsage blocks;
  std::map<void*, UsedElsewhere> used_elsewhere;  // in order, so that runs are alike
  std::deque<FreedElsewhere> freed_elsewhere;     // in the order of their batches
  bool heap_ended = false;  // its own free blocks need not wait for their batches any more
  std::atomic<uint32_t> foreign{0}, foreign_freed{0};  // of these
  std::atomic<uint32_t> captures{0};                   // of CUDA graphs, under way

  std::atomic<uint64_t> held{0};    // pages
  std::atomic<uint64_t> little{0};  // pages that it may hold where a batch ends
  std::atomic<Stop> stop{Stop::kNowhere};
  std::atomic<uint64_t> marked_ns{0};  // when its iteration last ended, its door still to come
  std::atomic<bool> tracing{false}, in_iteration{false};
  std::atomic<int32_t> nodes_to_mark{
      0};                               // graph nodes until an iteration ends; 0 or less: no matter
  std::atomic<bool> led{false};         // a thread has entered
  std::atomic<bool> setting_up{false};  // begun, and no iteration has begun yet
  // Threads of the job that rest, of these for a lock that a library of native code has, and
  // whether its memory is away meanwhile; see rests.cpp.
  std::atomic<uint32_t> rests_in_libraries{0};
  std::atomic<uint32_t> resting{0};
  std::atomic<bool> away{false};
  std::atomic<uint32_t> tasks{0};  // of the job, that threads of torch's own compute
  Recorder recorder;
  Trace trace;
  Kinds kinds;
  Evaluation evaluation;

  // The rest is guarded by the governor's mutex.
  uint32_t id = 0;
  bool begun = false, ended = false, cancelled = false;
  bool open = false, alone = false, overrunning = false, curve_given = false;
  bool after_batch = false;  // the open iteration, or the next, goes on with an evaluation
  uint32_t warmup_left = 0, distrusted = 0;
  uint32_t threads = 0, waiting_threads = 0;  // that work for the job; that wait here
  uint32_t fork_waits = 0;                    // of these, until they may fork
  uint32_t stopped = 0;                       // of these, until another job has forked
  bool started_process = false;               // in the open iteration, or waits for its turn to
  uint64_t saved = 0;                         // pages whose contents were copied out; not in `held`
  uint64_t copy_failed_ns = 0;                // when it was last tried in vain; 0: never
  uint64_t goes_on_until_ns = 0;           // past one that it was to leave for, since it could not
  uint64_t held_back_since_ns = 0;         // at its door, for that one; 0: it is not
  uint32_t woken = 0;                      // threads that found its memory away
  uint64_t stranded_since_ns = 0;          // without room for what was copied out; 0: it has
  bool abandoned = false;                  // for that; its threads wait for ever
  uint64_t blocks_seen = 0, moved_ns = 0;  // when it last made or freed a block, or waited here
  uint64_t computed_ns = 0;  // when it was last seen to compute in no iteration, with memory
  PageUsage pages;
  uint64_t limit = UINT64_MAX;      // pages that it may hold
  uint64_t gil_wait_before_ns = 0;  // that its open iteration began
  uint64_t opened_ns = 0, paused_ns = 0, held_max_here = 0, overrun_here = 0;
  uint64_t most_overrun = 0;                    // pages, of all its iterations
  uint64_t memory_waits = 0;                    // threads that wait for memory
  uint64_t waiting_since_ns = 0;                // when the first of them began
  uint64_t curve_version = 0, trace_after = 0;  // iterations before the traced one
  Curve curve;  // of all kinds of iterations: the most that any of them held
  Forecast forecast;
  Segments segments;
  uint64_t lease = 0;  // pages that the open iteration may come to hold in its segment
  IterationKinds iteration_kinds;
  int64_t rank = 0;
  // Page-seconds that its iterations held beyond its residue, up to granted_at_ns.
  double granted = 0;
  uint64_t granted_at_ns = 0, turn_began_ns = 0;
  uint64_t opening = 0;  // counted over all jobs; of its last iteration
  PeakKinds at_peak;
  std::vector<LogRecord> profiled_log;  // of the iteration that was traced
  Permit permit[kAccounts];
  IterationKinds::Times times(uint64_t now_ns) const;  // of the open iteration so far
  bool at_door() const { return stop.load() == Stop::kHere; }
  bool live_job() const { return begun && !ended; }
  bool trusted() const { return curve.known() && distrusted == 0; }
};

}  // namespace gpushare
