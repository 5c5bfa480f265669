// Charging pages, waiting for them, and what happens when none will come. Doors are in doors.cpp.
#include "governor.h"

#include <algorithm>
#include <cstdio>

#include "clock.h"
#include "gil.h"

namespace gpushare {

namespace {

constexpr uint64_t kWedgeNs = 1000000000;   // every open iteration waits and nothing was freed
constexpr uint32_t kDistrustFor = 20;       // iterations alone after an overrun beyond the headroom
constexpr uint64_t kMostHeadroomShare = 8;  // headroom is at most an eighth of the budget

}  // namespace

Governor::Governor(Device* device, Policy policy, uint64_t page_bytes, uint64_t budget_pages,
                   uint64_t address_pages, Telemetry* telemetry)
    : pool_(device, page_bytes, budget_pages, address_pages),
      policy_(policy),
      budget_(budget_pages),
      headroom_(budget_pages >= 64  ? 2
                : budget_pages >= 8 ? 1
                                    : 0),
      telemetry_(telemetry) {
  for (uint32_t i = 0; i < kAccounts; ++i) accounts_[i].id = i;
  accounts_[0].begun = true;
}

uint64_t Governor::claim_of(const Account& a) const {
  uint64_t held = a.held.load(std::memory_order_relaxed);
  return std::max(held, a.curve.known() ? a.curve.claim(a.recorder.ordinal()) : 0);
}

bool Governor::others_open(const Account& a) const {
  for (const Account& o : accounts_)
    if (o.open && o.id != a.id) return true;
  return false;
}

bool Governor::safe_after(const Account& a, uint64_t n, uint64_t claim, uint64_t limit) {
  if (held_ + n > limit) return false;
  Open open[kAccounts];
  uint32_t count = 0;
  for (uint32_t i = 1; i <= jobs_; ++i) {
    const Account& o = accounts_[i];
    bool asks = o.id == a.id;
    if (!o.open && !(asks && claim > 0)) continue;
    uint64_t held = o.held.load(std::memory_order_relaxed) + (asks ? n : 0);
    uint64_t most = std::max(held, asks ? claim : claim_of(o));
    uint64_t residue = o.curve.known() ? o.curve.residue() : held;
    open[count++] = {held, std::max(most, residue), residue};
  }
  return is_safe(open, count, limit - held_ - n);
}

Governor::Verdict Governor::judge(Account& a, uint64_t n, bool no_wait, bool* over) {
  uint64_t after = a.held.load(std::memory_order_relaxed) + n;
  *over = a.open && a.trusted() && after > claim_of(a);
  bool fits = held_ + n <= budget_;
  if (policy_ == Policy::kUnmanaged || no_wait) return fits ? Verdict::kGo : Verdict::kImpossible;
  if (!others_open(a)) {
    // Nobody will give anything back, unless a job that is still setting up or evaluating does.
    return fits ? Verdict::kGo : Verdict::kImpossible;
  }
  if (*over)
    for (const Account& o : accounts_)
      if (o.overrunning && o.id != a.id) return Verdict::kWait;
  uint64_t limit = *over ? budget_ : budget_ - headroom_;
  uint64_t claim = a.open ? std::max(after, claim_of(a)) : 0;
  return safe_after(a, n, claim, limit) ? Verdict::kGo : Verdict::kWait;
}

void Governor::add_pages(Account& a, uint64_t n, bool over) {
  uint64_t held = a.held.load(std::memory_order_relaxed) + n;
  a.held.store(held, std::memory_order_relaxed);
  held_ += n;
  held_peak_ = std::max(held_peak_, held_);
  a.held_max_here = std::max(a.held_max_here, held);
  if (over) {
    uint64_t claim = a.curve.claim(a.recorder.ordinal());
    if (held > claim) a.overrun_here = std::max(a.overrun_here, held - claim);
    if (!a.overrunning) note_overrun(a);
  }
  uint64_t page = pool_.page_bytes();
  telemetry_->header(kHeldTotal, held_ * page);
  telemetry_->header(kHeldPeak, held_peak_ * page);
  telemetry_->slot(a.id, kHeld, held * page);
  telemetry_->raise(a.id, kHeldMax, held * page);
  telemetry_->event(a.id, kHeldChanged, held * page);
}

void Governor::note_overrun(Account& a) {
  a.overrunning = true;
  telemetry_->add(a.id, kOverruns, 1);
  telemetry_->event(a.id, kOverrun, a.held.load(std::memory_order_relaxed) * pool_.page_bytes());
}

bool Governor::try_charge(uint32_t id, uint64_t n, bool no_wait) {
  Lock lock(mutex_);
  Account& a = accounts_[id];
  bool over;
  if (judge(a, n, no_wait, &over) != Verdict::kGo) return false;
  add_pages(a, n, over);
  return true;
}

void Governor::charge(uint32_t id, uint64_t n, bool no_wait, uint64_t bytes) {
  Lock lock(mutex_);
  Account& a = accounts_[id];
  bool over;
  switch (judge(a, n, no_wait || a.cancelled, &over)) {
    case Verdict::kGo:
      add_pages(a, n, over);
      return;
    case Verdict::kImpossible:
      refuse(a, n, bytes, lock);
    case Verdict::kWait:
      wait_for_memory(a, n, bytes, lock);
  }
}

void Governor::wait_for_memory(Account& a, uint64_t n, uint64_t bytes, Lock& lock) {
  Waiter w{.id = a.id, .pages = n, .since_ns = now_ns(), .wake = {}};
  State before = static_cast<State>(telemetry_->slot(a.id, kState));
  memory_waiters_.push_back(&w);
  set_state(a, kWaitingForMemory);
  telemetry_->add(a.id, kWaits, 1);
  telemetry_->event(a.id, kMemoryWaitBegin, n * pool_.page_bytes());
  sleep(w, lock);
  set_state(a, before);
  uint64_t now = now_ns(), waited = now - w.since_ns;
  a.paused_ns += waited;
  telemetry_->add(a.id, kMemoryWaitNs, waited);
  telemetry_->event(a.id, kMemoryWaitEnd, w.granted_ns ? now - w.granted_ns : 0);
  if (w.granted_ns) telemetry_->raise(a.id, kLongestWakeNs, now - w.granted_ns);
  if (w.refused) refuse(a, n, bytes, lock);
}

// Waits until someone has set w.done. The waiter is in one of the lists, and its granter removes
// it.
void Governor::sleep(Waiter& w, Lock& lock) {
  Account& a = accounts_[w.id];
  ++a.waiting_threads;
  parked_changed_.notify_all();
  // The GIL is given up with the lock dropped: taking it back may wait, and the lock must not.
  lock.unlock();
  {
    GilReleased released;
    lock.lock();
    w.wake.wait(lock, [&] { return w.done; });
    lock.unlock();
  }
  lock.lock();
}

// Lets a waiter go on. From here on it counts as running, though its thread has yet to wake.
void Governor::release(Waiter& w) {
  --accounts_[w.id].waiting_threads;
  w.done = true;
  w.wake.notify_one();
}

void Governor::uncharge(uint32_t id, uint64_t n) {
  Lock lock(mutex_);
  Account& a = accounts_[id];
  a.held.fetch_sub(n, std::memory_order_relaxed);
  held_ -= n;
  last_free_ns_ = now_ns();
  pump();
}

PageIndex Governor::reserve_range(uint64_t n) {
  Lock lock(mutex_);
  return pool_.reserve_range(n);
}

void Governor::release_range(PageIndex first, uint64_t n) {
  Lock lock(mutex_);
  pool_.release_range(first, n);
}

void Governor::hold(PageIndex first, uint64_t n, uint32_t id, Stream stream) {
  Lock lock(mutex_);
  pool_.hold(first, n, id, stream);
}

PageIndex Governor::hold_range(uint64_t n, uint32_t id, Stream stream) {
  Lock lock(mutex_);
  PageIndex first = pool_.reserve_range(n);
  if (first != kNoPage) pool_.hold(first, n, id, stream);
  return first;
}

void Governor::unhold(PageIndex first, uint64_t n, uint32_t id, Stream stream, bool release) {
  Lock lock(mutex_);
  pool_.unhold(first, n, stream);
  if (release) pool_.release_range(first, n);
  Account& a = accounts_[id];
  uint64_t held = a.held.load(std::memory_order_relaxed) - n;
  a.held.store(held, std::memory_order_relaxed);
  held_ -= n;
  last_free_ns_ = now_ns();
  telemetry_->header(kHeldTotal, held_ * pool_.page_bytes());
  telemetry_->slot(id, kHeld, held * pool_.page_bytes());
  telemetry_->event(id, kHeldChanged, held * pool_.page_bytes());
  pump();
}

// Grants what can be granted now: memory first, then doors, each in the order of asking.
void Governor::pump() {
  for (auto it = memory_waiters_.begin(); it != memory_waiters_.end();) {
    Waiter& w = **it;
    Account& a = accounts_[w.id];
    bool over;
    // While another job forks, whoever waits stays where it is: it can't hold a lock there.
    bool parked = parked_for_ && parked_for_ != w.id && !a.cancelled;
    Verdict verdict = parked ? Verdict::kWait : judge(a, w.pages, a.cancelled, &over);
    if (verdict == Verdict::kWait) {
      ++it;
      continue;
    }
    if (verdict == Verdict::kGo) {
      add_pages(a, w.pages, over);
      w.granted_ns = now_ns();
    }
    w.refused = verdict == Verdict::kImpossible;
    it = memory_waiters_.erase(it);
    release(w);
  }
  for (auto it = door_waiters_.begin(); it != door_waiters_.end();) {
    Waiter& w = **it;
    bool lacks_permit = false;
    if (!may_open(accounts_[w.id], &w, &lacks_permit)) {
      ++it;
      continue;
    }
    it = door_waiters_.erase(it);
    open(accounts_[w.id]);
    w.granted_ns = now_ns();
    release(w);
  }
}

std::string Governor::figures(const Account& a, uint64_t n, uint64_t bytes) const {
  double mib = 1048576.0 / static_cast<double>(pool_.page_bytes());
  char text[400];
  snprintf(
      text, sizeof text,
      "gpushare: out of memory: asked for %.1f MiB (%.1f MiB of pages); this job holds %.1f MiB, "
      "all together %.1f MiB, shared %.1f MiB; the budget is %.1f MiB. Raise --budget, or make "
      "the batch smaller.",
      static_cast<double>(bytes) / 1048576.0, static_cast<double>(n) / mib,
      static_cast<double>(a.held.load(std::memory_order_relaxed)) / mib,
      static_cast<double>(held_) / mib,
      static_cast<double>(accounts_[0].held.load(std::memory_order_relaxed)) / mib,
      static_cast<double>(budget_) / mib);
  return text;
}

void Governor::refuse(Account& a, uint64_t n, uint64_t bytes, Lock& lock) {
  uint64_t need = a.held.load(std::memory_order_relaxed) + n +
                  accounts_[0].held.load(std::memory_order_relaxed);
  telemetry_->add(a.id, kOomCount, 1);
  telemetry_->slot(a.id, kNeedsAtLeast, need * pool_.page_bytes());
  telemetry_->slot(a.id, kOomAlone, need > budget_);
  std::string text =
      a.cancelled ? "gpushare: interrupted while waiting for memory" : figures(a, n, bytes);
  lock.unlock();
  throw OutOfMemory(text);
}

// The safety check can't foresee bytes that exceed their claim. When every open iteration waits and
// nothing has moved for a while, the budget itself (headroom included) is the last reserve; after
// that the job that overran, else the one that asked last, gets an out-of-memory error.
void Governor::resolve_wedge() {
  uint64_t now = now_ns();  // under the lock: no free is later
  bool stuck = !memory_waiters_.empty();
  for (const Account& a : accounts_)
    if (a.open && a.waiting_threads == 0) stuck = false;
  if (!stuck) {
    wedged_since_ns_ = 0;
    return;
  }
  if (wedged_since_ns_ == 0) wedged_since_ns_ = now;
  if (now - std::max(wedged_since_ns_, last_free_ns_) < kWedgeNs) return;
  wedged_since_ns_ = 0;
  Waiter* victim = memory_waiters_.back();
  for (Waiter* w : memory_waiters_) {
    Account& a = accounts_[w->id];
    if (held_ + w->pages <= budget_) {
      add_pages(a, w->pages, a.open && a.trusted());
      w->granted_ns = now;
      memory_waiters_.remove(w);
      release(*w);
      return;
    }
    if (a.overrunning) victim = w;
  }
  memory_waiters_.remove(victim);
  victim->refused = true;
  release(*victim);
}

void Governor::learn(Account& a, uint64_t duration_ns) {
  uint64_t held = a.held.load(std::memory_order_relaxed);
  if (a.recorder.length() == 0) return;
  if (a.alone && a.warmup_left > 0) {
    --a.warmup_left;
    return;
  }
  bool first = !a.curve.known();
  bool rose = a.curve.refine(a.recorder, held, duration_ns);
  ++a.curve_version;
  if (a.overrun_here > headroom_) {
    uint64_t most = budget_ / kMostHeadroomShare;
    if (a.overrun_here > most) a.distrusted = kDistrustFor;
    headroom_ = std::max(headroom_, std::min(a.overrun_here, most));
  } else if (a.distrusted > 0) {
    --a.distrusted;
  }
  uint64_t page = pool_.page_bytes();
  if (first) a.kinds = a.trace.finish();
  telemetry_->slot(a.id, kProfiled, 1);
  telemetry_->slot(a.id, kCurveLength, a.curve.length());
  telemetry_->slot(a.id, kResidue, a.curve.residue() * page);
  telemetry_->raise(a.id, kLargestOverrun, a.overrun_here * page);
  telemetry_->header(kHeadroom, headroom_ * page);
  if (first || rose || a.curve_version % 16 == 0) changed();
}

void Governor::changed() {
  ++version_;
  changed_.notify_all();
}

void Governor::set_state(const Account& a, State state) {
  if (a.id) telemetry_->slot(a.id, kState, a.ended ? kEnded : state);
}

void Governor::tick() {
  Lock lock(mutex_);
  const PoolCounters& c = pool_.counters();
  uint64_t page = pool_.page_bytes();
  telemetry_->header(kBacked, pool_.backed() * page);
  telemetry_->header(kDropped, c.dropped);
  telemetry_->header(kChangedOwner, c.changed_owner);
  telemetry_->header(kSharedHeld, accounts_[0].held.load(std::memory_order_relaxed) * page);
  for (uint32_t i = 0; i <= jobs_; ++i) {
    Account& a = accounts_[i];
    telemetry_->slot(i, kLive, static_cast<uint64_t>(std::max<int64_t>(a.live, 0)));
    telemetry_->raise(i, kLiveMax, static_cast<uint64_t>(std::max<int64_t>(a.live_peak, 0)));
    telemetry_->slot(i, kProgress, a.recorder.ordinal());
    telemetry_->slot(i, kClaim, claim_of(a) * page);
    telemetry_->slot(i, kAllocations, a.allocations);
    telemetry_->slot(i, kFrees, a.frees);
  }
  pump();  // progress alone may have lowered a claim or passed a permit's point
  resolve_wedge();
}

std::string Governor::check() {
  Lock lock(mutex_);
  uint64_t sum = 0;
  for (const Account& a : accounts_) sum += a.held.load(std::memory_order_relaxed);
  if (sum != held_) return "the accounts' pages do not sum to the total";
  if (held_ > budget_) return "more pages are held than the budget has";
  return pool_.check(held_);
}

}  // namespace gpushare
