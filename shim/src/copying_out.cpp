// The last resort before an out-of-memory error: what a waiting job holds is copied out, the others
// go on, and it comes back to the same addresses before the job does.
//
// A job that leaves at its door stays away while the others could not run beside what it keeps;
// that is mostly until one of them ends. Some leave there although nobody waits (aside.cpp). A job
// that leaves in its iteration counts as waiting there, but holds nothing, so the others are judged
// as if the iteration were not open; it comes back when nobody else is in an iteration, or when
// that is safe. A job that left asleep (rests.cpp) stays away until one of its threads wakes.
//
// The copying is done under the lock: when a job leaves nobody else could go on anyway, or it is to
// be away for long, and it comes back once.
#include <algorithm>
#include <utility>

#include "clock.h"
#include "gil.h"
#include "governor.h"

namespace gpushare {

constexpr uint64_t kTryAgainNs = 1000000000;  // after a copy that failed

// Whether nobody can touch what the job holds: each of its threads rests, or waits here with no
// lock in hand that the others may want.
bool Judge::can_leave(const Account& a) const {
  bool failed = a.copy_failed_ns && now_ns() - a.copy_failed_ns < kTryAgainNs;
  return !a.saved && !a.cancelled && !failed && a.held > 0 && stands_still(a) && !is_impatient(a);
}

// Whether a thread of it waits with a lock in hand, so not for long.
bool Judge::is_impatient(const Account& a) const {
  return std::ranges::any_of(memory_waiters_,
                             [&](const Waiter* w) { return w->id == a.id && w->no_wait; });
}

bool Judge::may_leave(const Waiter& w) const { return can_leave(accounts_[w.id]); }

// Whether the waiter could go on if the budget had `more` pages.
bool Judge::would_help(const Waiter& w, uint64_t more) const {
  const Account& a = accounts_[w.id];
  if (a.saved || stands_aside(a)) return false;
  // Memory for a set-up: an iteration that is open comes first.
  if (w.pages) return (a.open || !others_open(a)) && held_ + w.pages <= budget_ + more;
  uint64_t held = a.held.load(std::memory_order_relaxed);
  uint64_t most = a.curve.known() ? std::max(held, a.curve.claim(0)) : held;
  return held_ - held + most <= budget_ + more;
}

// Pages of all jobs that wait here and could leave.
uint64_t Judge::could_leave() const {
  uint64_t sum = 0;
  for (const Account& a : accounts())
    if (has_waiter(a) && can_leave(a)) sum += a.held.load(std::memory_order_relaxed);
  return sum;
}

// Whether it would help another one if this one left, or, if there are `all` that could, this one
// and others, one after the other. `only_for_room`: one that has room waits for something else, and
// a set-up for who goes on.
bool Judge::helps(const Waiter& w, uint64_t all, bool only_for_room) const {
  uint64_t held = accounts_[w.id].held.load(std::memory_order_relaxed);
  auto of_others = [&](const Waiter& o) {
    return all - (may_leave(o) ? accounts_[o.id].held.load(std::memory_order_relaxed) : 0);
  };
  auto helped = [&](const Waiter* o) {
    bool waits_on = (o->pages && !accounts_[o->id].open) || would_help(*o, 0);
    if (o->id == w.id || (only_for_room && waits_on)) return false;
    return would_help(*o, all ? of_others(*o) : held);
  };
  return may_leave(w) && (std::ranges::any_of(memory_waiters_, helped) ||
                          std::ranges::any_of(door_waiters_, helped));
}

// Whether `b` goes before `a` by the order, or began before it where that has none of the two
// first.
bool Judge::goes_after(const Account& a, const Account& b) const {
  int order = compare(a, b);
  return order == 0 ? a.id > b.id : order > 0;
}

// Of two that wait for memory, of which `w` asked later. One that holds more than it claimed is to
// leave first. Who leaves in an iteration is back soon, so it may be who asked last, which is
// chance; who leaves in its set-up stays away until another job ends.
bool Judge::leaves_rather(const Waiter& w, const Waiter& than) const {
  const Account &a = accounts_[w.id], &b = accounts_[than.id];
  if (a.overrunning != b.overrunning) return a.overrunning;
  return a.open || b.open ? compare(a, b) >= 0 : goes_after(a, b);
}

// The waiter to copy out: of those at doors the job that goes last, else one that waits for memory.
Waiter* Judge::find_leaver(bool only_for_room) const {
  Waiter* found = nullptr;
  for (uint64_t all : {uint64_t{0}, could_leave()}) {
    for (Waiter* w : door_waiters_)
      if ((!found || goes_after(accounts_[w->id], accounts_[found->id])) &&
          helps(*w, all, only_for_room))
        found = w;
    if (found) return found;
    for (Waiter* w : memory_waiters_)
      if ((!found || leaves_rather(*w, *found)) && helps(*w, all, only_for_room)) found = w;
    if (found) return found;
  }
  return nullptr;
}

bool Governor::copy_out(Account& a) {
  if (!take_out(a)) return false;
  pump();
  return true;
}

// Nobody could look meanwhile who computes.
void Governor::note_copying(uint64_t begun_ns) {
  uint64_t took = now_ns() - begun_ns;
  nobody_ran_for(took);
  if (ticked_ns_) ticked_ns_ += took;  // else it would be a stop as well
}

void Governor::nobody_ran_for(uint64_t ns) {
  copying_ns_ += ns;
  uint64_t now = now_ns();
  for (uint32_t id = 1; id <= jobs_; ++id)
    if (uint64_t& last = accounts_[id].computed_ns) last = std::min(last + ns, now);
}

// Ctrl-Z, or a batch system that suspends a job: what is waited for has had no time either.
void Governor::note_stopped() {
  uint64_t now = now_ns(), ns = stopped_until(now);
  if (ns == 0) return;
  auto later = [&](uint64_t& since_ns) {
    if (since_ns) since_ns = std::min(since_ns + ns, now);  // it may have begun since
  };
  nobody_ran_for(ns);
  for (uint32_t id = 1; id <= jobs_; ++id) {
    Account& a = accounts_[id];
    later(a.moved_ns), later(a.stranded_since_ns), later(a.held_back_since_ns);
  }
  later(wedged_since_ns_), later(last_free_ns_), later(alone_since_ns_);
  later(moved_ns_), later(ended_ns_);
}

bool Governor::take_out(Account& a) {
  if (!send_away(a)) return false;
  uint64_t begun_ns = now_ns(), n = pool_.save(a.id);
  note_copying(begun_ns);
  if (n == 0) {
    a.copy_failed_ns = now_ns();
    come_back(a);
    return false;
  }
  a.copy_failed_ns = 0;
  a.saved = n;
  a.lease = 0;
  most_saved_ = std::max(most_saved_, n);
  uint64_t held = a.held.load(std::memory_order_relaxed) - n;
  a.held.store(held, std::memory_order_relaxed);
  held_ -= n;
  last_free_ns_ = now_ns();
  if (a.open) alone_since_ns_ = last_free_ns_;
  telemetry_->add(a.id, kCopiesOut, 1);
  note_saved(a);
  telemetry_->event(a.id, kHeldChanged, held * pool_.page_bytes(), last_free_ns_);
  return true;
}

void Governor::note_saved(const Account& a) {
  uint64_t page = pool_.page_bytes(), held = a.held.load(std::memory_order_relaxed) * page;
  telemetry_->header(kHeldTotal, held_ * page);
  telemetry_->slot(a.id, kHeld, held);
  telemetry_->slot(a.id, kCopiedOut, a.saved * page);
  State here = has_waiter(a) ? (a.open ? kWaitingForMemory : kAtDoor)
               : a.open      ? kIterating
                             : kSetUp;
  set_state(a, a.saved ? kIsCopiedOut : here);
}

// Whether the job could go on, with `pages` more, beside what the others keep when they are at
// their doors.
bool Judge::has_room_to_return(const Account& a, uint64_t pages) const {
  uint64_t sum = a.saved + pages;
  if (stands_aside(a)) return false;
  if (!a.open) {
    if (makes_way_for_passed(a)) return false;
    if (!leaves_room(a, sum, true)) return false;
    sum = std::max(sum, a.curve.known() ? a.curve.claim(0) : 0);
  }
  for (const Account& o : accounts()) {
    uint64_t rest = o.held.load(std::memory_order_relaxed);
    sum += o.open && o.curve.known() ? std::min(rest, o.curve.residue()) : rest;
  }
  return sum <= budget_;
}

// What may become of a job that was copied out: back with the pages that it asked for, back without
// them (refused), or nothing yet.
Judge::Verdict Judge::judge_return(const Account& a, uint64_t pages) const {
  uint64_t all = a.saved + pages, here = a.held.load(std::memory_order_relaxed);
  bool room = held_ + a.saved <= budget_, fits = held_ + all <= budget_;
  if (a.cancelled) return room ? Verdict::kImpossible : Verdict::kWait;
  if (!others_live(a)) return fits ? Verdict::kGo : room ? Verdict::kImpossible : Verdict::kWait;
  auto is_safe = [&](uint64_t n) {
    uint64_t claim = std::max(claim_of(a), here + n);
    // In no iteration: not before those who wait for what it has left have it, or it would leave
    // again.
    auto waits_here = [&](const Waiter* w) { return w->id != a.id && !accounts_[w->id].saved; };
    bool in_nobodys_way = a.open || std::ranges::none_of(memory_waiters_, waits_here);
    return !others_open(a) || (in_nobodys_way && safe_after(a, n, a.open ? claim : 0, budget_));
  };
  uint64_t least = a.open || !a.curve.known() ? all : std::max(all, a.curve.claim(0));
  if (kept_by_nobody_here() + here + least > budget_)  // whatever the others give back
    return room && is_safe(a.saved) ? Verdict::kImpossible : Verdict::kWait;
  bool goes = fits && is_safe(all) && (a.open || has_room_to_return(a, pages));
  return goes ? Verdict::kGo : Verdict::kWait;
}

// Puts the job's memory back; a refused waiter, or one that has got its pages, goes on. True if it
// did.
bool Governor::try_return(Waiter& w) {
  Account& a = accounts_[w.id];
  if (!a.saved) return false;
  Verdict verdict = judge_return(a, w.pages);
  if (verdict == Verdict::kWait || !pool_.can_restore(a.saved)) return false;
  restore(a, verdict == Verdict::kGo ? w.pages : 0);
  w.refused = verdict == Verdict::kImpossible;
  if (w.pages == 0 && !w.refused) return false;  // its door opens as any other
  if (!w.refused) w.granted_ns = now_ns();
  release(w);
  return true;
}

void Governor::restore(Account& a, uint64_t more) {
  uint64_t begun_ns = now_ns();
  pool_.restore(a.id);
  note_copying(begun_ns);
  uint64_t n = std::exchange(a.saved, 0) + more, held = a.held.load(std::memory_order_relaxed);
  add_pages(a, n, a.open && a.trusted() && held + n > claim_of(a));
  if (a.open) alone_since_ns_ = now_ns();
  note_saved(a);
  come_back(a);
}

// By the sampler, so that no thread that frees has to copy.
void Governor::bring_back() {
  if (parked_for_) return;
  for (auto* waiters : {&memory_waiters_, &door_waiters_})
    std::erase_if(*waiters, [&](Waiter* w) { return try_return(*w); });
  for (uint32_t id = 1; id <= jobs_; ++id)
    if (Account& a = accounts_[id];
        wakes_away(a) && judge_return(a, 0) != Verdict::kWait && pool_.can_restore(a.saved))
      restore(a, 0);
  if (std::ranges::none_of(accounts(), [](const Account& a) { return a.saved && !a.abandoned; }))
    most_saved_ = 0;
}

void Governor::unless_copied_out(uint32_t id, const std::function<void()>& act) {
  Lock lock(mutex_);
  if (!accounts_[id].saved) act();
}

void Governor::thread_enters(uint32_t id) {
  if (id == 0) return;
  Lock lock(mutex_);
  Account& a = accounts_[id];
  ++a.threads;
  if (!a.saved) return;
  lock.unlock();
  GilReleased released;
  Lock again(mutex_);
  if (!a.saved) return;
  ++a.woken;
  Waiter w = begin_wait_for_return(a);
  parked_changed_.wait(again, [&] { return !a.saved && !a.abandoned; });
  end_wait_for_return(w);
  --a.woken;
}

void Governor::thread_leaves(uint32_t id) {
  if (id == 0) return;
  Lock lock(mutex_);
  --accounts_[id].threads;
}

}  // namespace gpushare
