// Charging pages, waiting for them, and what happens when none will come. Doors are in doors.cpp.
#include "governor.h"

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "clock.h"
#include "gil.h"

namespace gpushare {

namespace {

constexpr uint64_t kWedgeNs = 1000000000;     // every open iteration waits and nothing was freed
constexpr uint64_t kPatienceNs = 2000000000;  // with a lock in hand that others may wait for
constexpr uint64_t kMeasureNs = 10000000000;  // a set-up waits this long for another's profile
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

bool Governor::others_live(const Account& a) const {
  for (const Account& o : accounts_)
    if (o.id && o.id != a.id && o.live_job()) return true;
  return false;
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

bool Governor::others_measured(const Account& a) const {
  for (const Account& o : accounts_)
    if (o.open && o.alone && o.id != a.id) return true;
  return false;
}

bool Governor::fits_beside_residues(const Account& a, uint64_t more) const {
  uint64_t held = a.held.load(std::memory_order_relaxed);
  uint64_t most = a.open ? claim_of(a) : a.curve.known() ? std::max(held, a.curve.claim(0)) : held;
  return held_ - held + more + most <= budget_;
}

bool Governor::leaves_room(const Account& a, uint64_t n) const {
  for (const Account& o : accounts_)
    if (o.id && o.id != a.id && o.live_job() && o.curve.known() && !fits_beside_residues(o, n))
      return false;
  return true;
}

bool Governor::has_a_place(const Waiter& w) const {
  const Account& a = accounts_[w.id];
  if (a.open || !others_live(a)) return true;
  uint64_t held = a.held.load(std::memory_order_relaxed), sum = held + w.pages;
  if (w.pages == 0 && a.curve.known()) sum = std::max(held, a.curve.claim(0));
  uint64_t largest_rise = 0;
  for (const Account& o : accounts_) {
    if (o.id == w.id) continue;
    uint64_t rest = o.held.load(std::memory_order_relaxed);
    if (o.id && o.live_job() && o.curve.known()) {
      rest = o.open ? std::min(rest, o.curve.residue()) : rest;
      uint64_t most = o.curve.claim(0);
      largest_rise = std::max(largest_rise, most - std::min(most, rest));
    }
    sum += rest;
  }
  // Pages taken at a door come back; those of a set-up stay, beside the largest of the others.
  return sum + (w.pages ? largest_rise : 0) <= budget_;
}

// What a job takes before its first iteration it may keep to its end: it must leave each job whose
// need is known the room to run by itself, or wait until one ends. A need that is being measured is
// waited for.
Governor::Verdict Governor::judge_set_up(const Account& a, uint64_t n, uint64_t waited_ns) {
  if (others_measured(a) && waited_ns < kMeasureNs) return Verdict::kWait;
  uint64_t alone = a.held.load(std::memory_order_relaxed) + n +
                   accounts_[0].held.load(std::memory_order_relaxed);
  uint64_t limit = others_open(a) ? budget_ - headroom_ : budget_;
  if (safe_after(a, n, 0, limit) && leaves_room(a, n)) return Verdict::kGo;
  return alone <= budget_ && others_live(a) ? Verdict::kWait : Verdict::kImpossible;
}

Governor::Verdict Governor::judge(Account& a, uint64_t n, bool no_wait, uint64_t waited_ns,
                                  bool* over) {
  uint64_t after = a.held.load(std::memory_order_relaxed) + n;
  *over = a.open && a.trusted() && after > claim_of(a);
  bool fits = held_ + n <= budget_;
  if (policy_ == Policy::kUnmanaged || a.cancelled || !a.id)
    return fits ? Verdict::kGo : Verdict::kImpossible;
  if (no_wait) return fits ? Verdict::kGo : others_live(a) ? Verdict::kWait : Verdict::kImpossible;
  if (!a.open) return judge_set_up(a, n, waited_ns);
  // Nobody in an iteration: nobody will give anything back.
  if (!others_open(a)) return fits ? Verdict::kGo : Verdict::kImpossible;
  if (*over)
    for (const Account& o : accounts_)
      if (o.overrunning && o.id != a.id) return Verdict::kWait;
  uint64_t limit = *over ? budget_ : budget_ - headroom_;
  return safe_after(a, n, std::max(after, claim_of(a)), limit) ? Verdict::kGo : Verdict::kWait;
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
  if (judge(a, n, no_wait, 0, &over) != Verdict::kGo) return false;
  add_pages(a, n, over);
  return true;
}

void Governor::charge(uint32_t id, uint64_t n, bool no_wait, uint64_t bytes) {
  Lock lock(mutex_);
  Account& a = accounts_[id];
  bool over;
  switch (judge(a, n, no_wait, 0, &over)) {
    case Verdict::kGo:
      add_pages(a, n, over);
      return;
    case Verdict::kImpossible:
      refuse(a, n, bytes, lock);
    case Verdict::kWait:
      wait_for_memory(a, n, no_wait, bytes, lock);
  }
}

void Governor::wait_for_memory(Account& a, uint64_t n, bool no_wait, uint64_t bytes, Lock& lock) {
  Waiter w{.id = a.id, .pages = n, .since_ns = now_ns(), .no_wait = no_wait, .wake = {}};
  State before = static_cast<State>(telemetry_->slot(a.id, kState));
  memory_waiters_.push_back(&w);
  set_state(a, kWaitingForMemory);
  telemetry_->add(a.id, kWaits, 1);
  telemetry_->event(a.id, kMemoryWaitBegin, n * pool_.page_bytes());
  sleep(w, lock);
  set_state(a, before);
  uint64_t now = now_ns(), waited = now - w.since_ns;
  a.paused_ns += waited;
  a.recorder.skip(waited);
  telemetry_->add(a.id, kMemoryWaitNs, waited);
  telemetry_->event(a.id, kMemoryWaitEnd, w.granted_ns ? now - w.granted_ns : 0);
  if (w.granted_ns) telemetry_->wake(a.id, now - w.granted_ns);
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
    auto done = [&] { return w.done; };
    if (!w.no_wait) {
      w.wake.wait(lock, done);
    } else if (!w.wake.wait_for(lock, std::chrono::nanoseconds(kPatienceNs), done)) {
      memory_waiters_.remove(&w);
      w.refused = true;
      release(w);
    }
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
uint64_t Governor::pump() {
  uint64_t opened = 0;
  for (auto it = memory_waiters_.begin(); it != memory_waiters_.end();) {
    Waiter& w = **it;
    Account& a = accounts_[w.id];
    bool over;
    // While another job forks, whoever waits stays where it is: it can't hold a lock there.
    bool parked = parked_for_ && parked_for_ != w.id && !a.cancelled;
    Verdict verdict =
        parked ? Verdict::kWait : judge(a, w.pages, w.no_wait, now_ns() - w.since_ns, &over);
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
    if (!may_open(accounts_[w.id], &w)) {
      ++it;
      continue;
    }
    it = door_waiters_.erase(it);
    open(accounts_[w.id]);
    w.granted_ns = now_ns();
    release(w);
    ++opened;
  }
  return opened;
}

std::string Governor::figures(const Account& a, uint64_t n, uint64_t bytes) const {
  double mib = 1048576.0 / static_cast<double>(pool_.page_bytes());
  uint64_t held = a.held.load(std::memory_order_relaxed);
  uint64_t shared = accounts_[0].held.load(std::memory_order_relaxed);
  char text[400];
  snprintf(text, sizeof text,
           "gpushare: out of memory: asked for %.1f MiB (%.1f MiB of pages); this job holds %.1f "
           "MiB, the other jobs %.1f MiB, shared %.1f MiB; the budget is %.1f MiB. Raise --budget, "
           "or make the batch smaller.",
           static_cast<double>(bytes) / 1048576.0, static_cast<double>(n) / mib,
           static_cast<double>(held) / mib, static_cast<double>(others_hold(a)) / mib,
           static_cast<double>(shared) / mib, static_cast<double>(budget_) / mib);
  return text;
}

uint64_t Governor::others_hold(const Account& a) const {
  uint64_t rest = held_ - a.held.load(std::memory_order_relaxed);
  return a.id ? rest - accounts_[0].held.load(std::memory_order_relaxed) : rest;
}

// `n` pages more than it holds are what the job can't go on without.
void Governor::refuse(Account& a, uint64_t n, uint64_t bytes, Lock& lock) {
  uint64_t held = a.held.load(std::memory_order_relaxed), page = pool_.page_bytes();
  uint64_t shared = accounts_[0].held.load(std::memory_order_relaxed);
  bool alone = held + n + shared > budget_;
  // A job that has not run beside the others yet and can't: its residue or theirs is in the way.
  bool beside = !alone && !others_open(a) && telemetry_->slot(a.id, kSharedIterations) == 0;
  telemetry_->add(a.id, kOomCount, 1);
  telemetry_->slot(a.id, kNeedsAtLeast, (held + n + shared) * page);
  telemetry_->slot(a.id, kOthersKeep, others_hold(a) * page);
  uint64_t refusal = alone ? uint64_t{kAloneTooLarge} : uint64_t{kTooLargeBesideOthers};
  telemetry_->slot(a.id, kRefusal, alone || beside ? refusal : 0);
  std::string text =
      a.cancelled ? "gpushare: interrupted while waiting for memory" : figures(a, n, bytes);
  lock.unlock();
  throw OutOfMemory(text);
}

// Whether nothing that is under way can make room: every open iteration waits for memory, or every
// job waits for something.
bool Governor::stuck(bool among_open) const {
  if (parked_for_) return false;
  bool any = false;
  for (const Account& a : accounts_) {
    if (!(among_open ? a.open : a.id && a.live_job())) continue;
    if (a.waiting_threads == 0) return false;
    any = true;
  }
  return any && !(memory_waiters_.empty() && door_waiters_.empty());
}

// The safety check can't foresee bytes that exceed their claim. When nothing has moved for a while,
// the budget itself (headroom included) is the last reserve; after that the job that overran, else
// the one that asked last or began last, gets an out-of-memory error.
void Governor::resolve_wedge() {
  uint64_t now = now_ns();  // under the lock: no free is later
  bool in_iterations = stuck(true);
  if (!in_iterations && !stuck(false)) {
    wedged_since_ns_ = 0;
    return;
  }
  if (wedged_since_ns_ == 0) wedged_since_ns_ = now;
  if (now - std::max(wedged_since_ns_, last_free_ns_) < kWedgeNs) return;
  wedged_since_ns_ = 0;
  Waiter* victim = nullptr;
  for (Waiter* w : memory_waiters_) {
    Account& a = accounts_[w->id];
    if (in_iterations && !a.open) continue;
    if (held_ + w->pages <= budget_) {
      add_pages(a, w->pages, a.open && a.trusted());
      w->granted_ns = now;
      memory_waiters_.remove(w);
      release(*w);
      return;
    }
    if (!victim || a.overrunning || !accounts_[victim->id].overrunning) victim = w;
  }
  if (!victim && in_iterations) return;
  for (Waiter* w : door_waiters_)
    if (!in_iterations && (!victim || w->id > victim->id)) victim = w;
  if (!victim) return;
  memory_waiters_.remove(victim);
  door_waiters_.remove(victim);
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

PoolState Governor::pool_state() {
  Lock lock(mutex_);
  return {held_, headroom_, accounts_[0].held.load(std::memory_order_relaxed), pool_.free_ranges()};
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
