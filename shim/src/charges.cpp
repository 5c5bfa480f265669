// Charging pages to accounts, and giving them back. Which step is safe is in judge.cpp, waiting in
// waits.cpp.
#include <algorithm>

#include "clock.h"
#include "governor.h"

namespace gpushare {

namespace {

constexpr double kLeastShare = 16;  // of the budget, that an iteration counts for at least

double pages_beyond(uint64_t held, uint64_t residue) {
  return held > residue ? static_cast<double>(held - residue) : 0.0;
}

}  // namespace

// Salus's fairness: memory times time, of what iterations were granted beyond the job's residue.
void Governor::integrate(Account& a, uint64_t now_ns) {
  if (!a.open || now_ns <= a.granted_at_ns) return;
  uint64_t held = a.held.load(std::memory_order_relaxed);
  uint64_t residue = a.curve.known() ? a.curve.residue() : 0;
  double seconds = static_cast<double>(now_ns - a.granted_at_ns) * 1e-9;
  // Who holds next to nothing takes time all the same, and would else be first for ever.
  double least = std::max(1.0, static_cast<double>(budget_) / kLeastShare);
  a.granted += std::max(pages_beyond(held, residue), least) * seconds;
  a.granted_at_ns = now_ns;
}

void Governor::add_pages(Account& a, uint64_t n, bool over) {
  uint64_t now = coarse_now_ns();
  integrate(a, now);
  uint64_t held = a.held.load(std::memory_order_relaxed) + n;
  a.held.store(held, std::memory_order_relaxed);
  held_ += n;
  held_peak_ = std::max(held_peak_, held_);
  a.pages.charged(n, held);
  a.held_max_here = std::max(a.held_max_here, held);
  if (over) {
    uint64_t claim = a.curve.claim(a.recorder.ordinal());
    if (held > claim) a.overrun_here = std::max(a.overrun_here, held - claim);
    if (!a.overrunning) note_overrun(a);
  }
  uint64_t page = pool_.page_bytes();
  telemetry_->header(kHeldPeak, held_peak_ * page);
  telemetry_->raise(a.id, kHeldMax, held * page);
  publish_held(a, now);
}

void Governor::publish_held(const Account& a, uint64_t now) {
  uint64_t bytes = a.held.load(std::memory_order_relaxed) * pool_.page_bytes();
  telemetry_->header(kHeldTotal, held_ * pool_.page_bytes());
  telemetry_->slot(a.id, kHeld, bytes);
  telemetry_->event(a.id, kHeldChanged, bytes, now);
}

void Governor::note_overrun(Account& a) {
  a.overrunning = true;
  telemetry_->add(a.id, kOverruns, 1);
  telemetry_->event(a.id, kOverrun, a.held.load(std::memory_order_relaxed) * pool_.page_bytes(),
                    now_ns());
}

Judge::Judged Governor::decide(Account& a, uint64_t n, bool no_wait, uint64_t waited_ns) {
  uint64_t after = a.held.load(std::memory_order_relaxed) + n;
  a.iteration_kinds.recognise(a.recorder);
  if (a.open && after > claim_of(a)) a.iteration_kinds.mistaken();
  trim_leases();
  bool over = a.open && a.trusted() && after > claim_of(a);
  if (after > a.limit) return {Verdict::kImpossible};
  bool fits = held_ + n <= budget_;
  if (!a.id) fits = fits && after + most_saved_ <= budget_;  // who was copied out must come back
  if (policy_ == Policy::kUnmanaged || a.cancelled || !a.id)
    return {fits ? Verdict::kGo : Verdict::kImpossible, {}, over};
  bool alone = a.open && !others_open(a);
  if (fits && alone && !no_wait && !over) promise(a, after);
  if (fits && (no_wait || alone)) return {Verdict::kGo, {}, over};
  if (no_wait) {
    if (!others_live(a)) return {Verdict::kImpossible};
    return {Verdict::kWait, {kClaims, largest_other(a)}};
  }
  if (!a.open) return judge_set_up(a, n, waited_ns);
  if (!others_open(a)) return judge_alone(a, n, waited_ns);
  if (over)
    for (const Account& o : accounts())
      if (o.overrunning && o.id != a.id) return {Verdict::kWait, {kOverran, o.id}};
  uint64_t limit = over ? budget_ : budget_ - headroom_;
  uint64_t claim = std::max(after, claim_of(a));
  bool safe = safe_after(a, n, claim, limit);
  if (!safe && over) {
    drop_leases();
    safe = safe_after(a, n, claim, limit);
  }
  if (!safe) return {Verdict::kWait, {kClaims, largest_other(a)}};
  if (!over) promise(a, after);
  return {Verdict::kGo, {}, over};
}

bool Governor::try_charge_locked(uint32_t id, uint64_t n, bool no_wait) {
  Account& a = accounts_[id];
  Judged judged = decide(a, n, no_wait, 0);
  if (judged.verdict != Verdict::kGo) return false;
  add_pages(a, n, judged.over);
  return true;
}

bool Governor::try_charge(uint32_t id, uint64_t n, bool no_wait) {
  Lock lock(mutex_);
  return try_charge_locked(id, n, no_wait);
}

void Governor::charge(uint32_t id, uint64_t n, bool no_wait, uint64_t bytes) {
  Lock lock(mutex_);
  Account& a = accounts_[id];
  Judged judged = decide(a, n, no_wait, 0);
  switch (judged.verdict) {
    case Verdict::kGo:
      add_pages(a, n, judged.over);
      return;
    case Verdict::kImpossible:
      refuse(a, n, bytes, lock);
    case Verdict::kWait:
      wait_for_memory(a, n, no_wait, bytes, judged.shut, lock);
  }
}

void Governor::uncharge(uint32_t id, uint64_t n) {
  uint64_t since = sleepers_.load(std::memory_order_relaxed) ? now_ns() : 0;
  Lock lock(mutex_);
  remove_pages(accounts_[id], n);
  pump_freed(since);
}

void Governor::remove_pages(Account& a, uint64_t n) {
  last_free_ns_ = coarse_now_ns();
  integrate(a, last_free_ns_);
  a.held.fetch_sub(n, std::memory_order_relaxed);
  held_ -= n;
  publish_held(a, last_free_ns_);
}

}  // namespace gpushare
