// Scripts alternate: generator and discriminator, training and evaluation, steps that accumulate, a
// last batch that is smaller. Each kind of iteration has a curve of its own. Which one comes next
// is forecast from what followed the last one so far. Which one is under way is told by its first
// allocations; until then, and where they tell nothing, it claims the most of all kinds.
//
// Guarded by the governor's mutex.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "curve.h"
#include "forecast.h"

namespace gpushare {

class IterationKinds {
 public:
  static constexpr uint32_t kMost = 8;          // what comes after them joins the one most alike
  static constexpr uint32_t kMostBatches = 3;   // of these, batches of evaluations
  static constexpr uint32_t kSignatures = 256;  // first allocations that are remembered
  struct Kind {
    Curve curve;
    Forecast forecast;
    bool batch = false;
    uint64_t seen = 0;
    uint64_t followed_by[kMost] = {};
    double weight = 1;         // its time alone against the profiled one's
    uint64_t ended = 0;        // its last one, counted over all
    uint64_t seen_before = 0;  // of these, in an earlier run
    uint64_t followed_before[kMost] = {};
    uint64_t began = 0;  // its first one of this run, counted over all
    bool usual = false;  // it has come often
  };
  // How long an iteration took, up to the door behind it, without what it waited for memory.
  struct Times {
    uint64_t duration_ns = 0;
    uint64_t after_ns = 0;         // of these, behind its end
    bool started_process = false;  // it forked, or started a program
  };
  // What iterations hold and allocate at most, of the kinds that are usual: a validation once in a
  // while makes no others of them, of however many batches.
  struct Extent {
    uint64_t pages = 0, allocations = 0;
  };

  // A kind that an earlier run of the job knew, with how often it was seen and what followed.
  // Before the first iteration; what comes after kMost is left out.
  void add(Curve curve, uint64_t seen, std::span<const uint64_t> followed_by);
  uint32_t count() const { return static_cast<uint32_t>(kinds_.size()); }
  const Kind& kind(uint32_t i) const { return kinds_[i]; }
  uint32_t last() const { return last_; }  // kind of the last iteration; kMost: there was none
  // The next iteration begins: it may be of any kind.
  void begin();
  // Its first allocations are known: it is of a kind that began so, if that was seen often. Once an
  // iteration.
  void recognise(const Recorder& r);
  // It is of none of the kinds that it could be.
  void mistaken();
  // What it was; the first one that ever ends is the profiled one. Returns its kind.
  uint32_t end(const Recorder& r, uint64_t residue_pages, Times times, bool batch = false);
  // It was the first one of a job that is known: one more, of no kind.
  void pass_over();
  // Most pages that the rest of the open iteration needs. `all_kinds` is what the curve of them all
  // claims there.
  uint64_t claim(uint32_t ordinal, uint64_t all_kinds) const;
  // Iterations done so far, the open one's part included, each as long as its kind is against the
  // profiled one. An errand, which is none of its kind's time (it started an epoch's workers, or
  // wrote a checkpoint behind its end), counts for as many as would have been done meanwhile.
  double work(const Recorder& r, bool open, Times so_far) const;
  Extent usual() const;
  // What a curve may learn of the last iteration's time; 0: nothing.
  uint64_t last_time_ns() const { return last_time_ns_; }
  // Of the last iteration alone, in millionths.
  uint64_t last_work() const { return static_cast<uint64_t>(last_work_ * 1e6); }
  // The likeliest kind of the open iteration, or of the next; null while nothing is known.
  const Kind* likely() const;

 private:
  using Set = uint32_t;  // a bit for each kind
  static constexpr uint64_t kSeenOften = 3, kDistrustFor = 20;
  static constexpr uint64_t kUsualFrom = 4, kUsualShare = 8;  // seen so often, and once in so many
  struct Beginning {
    Set kinds = 0;
    uint64_t seen = 0;
  };

  bool starts_processes_at_times(Times times) const;
  static uint64_t errand_ns(const Kind& kind, Times times, bool began);
  void weigh(uint32_t found);
  double work_of(uint64_t errand_ns) const;
  void note_usual(Kind& kind);
  bool came_lately(uint32_t i) const;
  uint32_t find(const Recorder& r, uint64_t residue_pages, bool batch) const;
  // Of those that may be; count(): none may.
  template <class May>
  uint32_t most_alike(const Recorder& r, May may) const;

  std::vector<Kind> kinds_;
  std::map<uint64_t, Beginning> beginnings_;
  uint32_t last_ = kMost;
  uint64_t last_time_ns_ = 0;
  double work_ = 0, last_work_ = 0;
  uint64_t ended_ = 0, seen_before_ = 0, started_processes_ = 0;
  uint32_t measure_ = 0;  // kind whose time tells that of the others
  Set may_be_ = 0;        // of the open one, once it was recognised; 0: any
  bool looked_ = false;
  uint64_t distrusted_ = 0;  // iterations in which none is recognised
};

}  // namespace gpushare
