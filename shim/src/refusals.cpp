// What a job is told whose memory can't be given: the figures, and what to do.
#include <algorithm>
#include <cstdio>
#include <string>

#include "clock.h"
#include "governor.h"

namespace gpushare {

namespace {
constexpr uint64_t kOfLateNs = 20000000000;  // a copy that failed before tells nothing of now
}  // namespace

// Why nothing of others was copied out that might have been, if that was tried of late.
const char* Judge::why_nothing_left(const Account& a) const {
  auto failed = [&, now = now_ns()](const Account& o) {
    bool of_late = o.copy_failed_ns && now - o.copy_failed_ns < kOfLateNs;
    return o.id != a.id && o.live_job() && of_late;
  };
  if (std::ranges::none_of(accounts(), failed)) return "";
  return device_->asynchronous()
             ? " What jobs keep could not be copied out: has the machine too little memory left?"
             : " What jobs keep could not be copied out: is there room in $TMPDIR?";
}

std::string Judge::figures(const Account& a, uint64_t n, uint64_t bytes) const {
  double mib = 1048576.0 / static_cast<double>(pool_.page_bytes());
  uint64_t held = a.held.load(std::memory_order_relaxed);
  uint64_t shared = accounts_[0].held.load(std::memory_order_relaxed);
  if (held + n > a.limit) {
    char text[300];
    snprintf(text, sizeof text,
             "gpushare: out of memory: asked for %.1f MiB (%.1f MiB of pages); this job holds %.1f "
             "MiB and has set itself a limit of %.1f MiB (set_per_process_memory_fraction).",
             static_cast<double>(bytes) / 1048576.0, static_cast<double>(n) / mib,
             static_cast<double>(held) / mib, static_cast<double>(a.limit) / mib);
    return text;
  }
  char text[500];
  snprintf(text, sizeof text,
           "gpushare: out of memory: asked for %.1f MiB (%.1f MiB of pages); this job holds %.1f "
           "MiB, the other jobs %.1f MiB, shared %.1f MiB; the budget is %.1f MiB. Raise --budget, "
           "or make the batch smaller.%s",
           static_cast<double>(bytes) / 1048576.0, static_cast<double>(n) / mib,
           static_cast<double>(held) / mib, static_cast<double>(others_hold(a)) / mib,
           static_cast<double>(shared) / mib, static_cast<double>(budget_) / mib,
           held + n + shared <= budget_ ? why_nothing_left(a) : "");
  return text;
}

uint64_t Judge::others_hold(const Account& a) const {
  uint64_t rest = held_ - a.held.load(std::memory_order_relaxed);
  return a.id ? rest - accounts_[0].held.load(std::memory_order_relaxed) : rest;
}

// `n` pages more than it holds are what the job can't go on without.
void Governor::refuse(Account& a, uint64_t n, uint64_t bytes, Lock& lock, bool interrupted) {
  uint64_t held = a.held.load(std::memory_order_relaxed), page = pool_.page_bytes();
  uint64_t shared = a.id ? accounts_[0].held.load(std::memory_order_relaxed) : 0;
  interrupted |= a.cancelled;
  bool own_limit = held + n > a.limit;  // tells nothing of what the job needs
  bool alone = !own_limit && held + n + shared > budget_;
  // A job that has not run beside the others yet and can't: its residue or theirs is in the way.
  bool beside =
      !own_limit && !alone && !others_open(a) && telemetry_->slot(a.id, kSharedIterations) == 0;
  telemetry_->add(a.id, kOomCount, 1);
  telemetry_->slot(a.id, kNeedsAtLeast, (held + n + shared) * page);
  telemetry_->slot(a.id, kOthersKeep, others_hold(a) * page);
  uint64_t refusal = alone ? uint64_t{kAloneTooLarge} : uint64_t{kTooLargeBesideOthers};
  telemetry_->slot(a.id, kRefusal, !interrupted && (alone || beside) ? refusal : 0);
  std::string text = interrupted ? "" : figures(a, n, bytes);
  lock.unlock();
  if (interrupted) throw Interrupted("gpushare: interrupted while waiting for memory");
  throw OutOfMemory(text);
}

}  // namespace gpushare
