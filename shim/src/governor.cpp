// Pages for heaps, learning from iterations, and what the sampler has done every few milliseconds.
// Charging is in charges.cpp, waiting in waits.cpp, iterations in doors.cpp.
#include "governor.h"

#include <algorithm>
#include <utility>

#include "clock.h"

namespace gpushare {

namespace {

constexpr uint32_t kDistrustFor = 20;  // iterations alone after an overrun beyond the headroom

}  // namespace

Governor::Governor(Device* device, Policy policy, uint64_t page_bytes, uint64_t budget_pages,
                   uint64_t address_pages, Telemetry* telemetry)
    : Judge(device, policy, page_bytes, budget_pages, address_pages, telemetry) {}

Governor::Took Governor::try_hold(PageIndex first, uint64_t n, uint64_t missing, uint32_t id,
                                  Stream stream, bool no_wait, bool may_stall, DeviceWork& work) {
  Lock lock(mutex_);
  if (!may_stall && pool_.stalls(first, n)) return Took::kStalls;
  if (missing && !try_charge_locked(id, missing, no_wait)) return Took::kWaits;
  pool_.hold(first, n, id, stream, work);
  return Took::kYes;
}

// The wake-up of who waited for that is measured from the free on, the lock that it took included.
void Governor::pump_freed(uint64_t since_ns) {
  freeing_since_ns_ = since_ns;
  pump();
  freeing_since_ns_ = 0;
}

uint64_t Governor::granted_now() const { return freeing_since_ns_ ? freeing_since_ns_ : now_ns(); }

PageIndex Governor::reserve_range(uint64_t n) {
  Lock lock(mutex_);
  return pool_.reserve_range(n);
}

void Governor::release_range(PageIndex first, uint64_t n) {
  Lock lock(mutex_);
  pool_.release_range(first, n);
}

PageIndex Governor::hold_range(uint64_t n, uint32_t id, Stream stream, DeviceWork& work) {
  Lock lock(mutex_);
  return pool_.hold_range(n, id, stream, work);
}

PageIndex Governor::try_hold_range(uint64_t n, uint32_t id, Stream stream, bool no_wait,
                                   DeviceWork& work) {
  Lock lock(mutex_);
  Judged judged = decide(accounts_[id], n, no_wait, 0);
  if (judged.verdict != Verdict::kGo) return kNoPage;
  PageIndex first = pool_.hold_range(n, id, stream, work);
  if (first != kNoPage) add_pages(accounts_[id], n, judged.over);
  return first;
}

void Governor::forget_stream(Stream stream) {
  Lock lock(mutex_);
  pool_.forget_stream(stream);
}

bool Governor::stalls(PageIndex first, uint64_t n) {
  if (!device_->aliases()) return false;
  Lock lock(mutex_);
  return pool_.stalls(first, n);
}

void Governor::unhold(PageIndex first, uint64_t n, uint32_t id, const std::atomic<Stream>& stream,
                      bool release, const DeviceWork* undone) {
  uint64_t since = sleepers_.load(std::memory_order_relaxed) ? now_ns() : 0;
  Lock lock(mutex_);
  Stream used = stream.load(std::memory_order_relaxed);
  if (undone) pool_.give_up(*undone);
  uint64_t saved = release ? pool_.unhold_range(first, n, used) : pool_.unhold(first, n, used);
  Account& a = accounts_[id];
  a.saved -= saved;
  remove_pages(a, n - saved);
  if (saved && !a.saved && !a.abandoned) {  // nothing is away any more
    note_saved(a);
    come_back(a);
  }
  pump_freed(since);
}

void Governor::learn(Account& a, IterationKinds::Times times, bool batch) {
  uint64_t held = a.held.load(std::memory_order_relaxed);
  if (a.recorder.length() == 0) return;
  if (a.warmup_left > 0 && (a.alone || (a.curve_given && !batch))) {
    --a.warmup_left;
    if (!a.alone) pass_over(a);
    return;
  }
  bool first = !a.curve.known();
  // What is kept from batch to batch goes with the evaluation, and times are those of iterations.
  if (batch) held = a.curve.residue();
  learn_from_excess(a, batch);
  bool profiled_one = a.iteration_kinds.end(a.recorder, held, times, batch) == 0;
  uint64_t time_ns = a.iteration_kinds.last_time_ns();
  bool rose =
      batch ? a.curve.cover(a.recorder) : a.curve.refine(a.recorder, held, time_ns, profiled_one);
  a.forecast.follow(a.curve, !rose);
  if (rose) a.segments.cut(a.curve, split_);
  telemetry_->slot(a.id, kIterationKinds, a.iteration_kinds.count());
  if (first) a.granted = least_granted(a);
  ++a.curve_version;
  uint64_t page = pool_.page_bytes();
  telemetry_->slot(a.id, kProfiled, 1);
  telemetry_->slot(a.id, kCurveLength, a.curve.length());
  telemetry_->slot(a.id, kResidue, a.curve.residue() * page);
  telemetry_->raise(a.id, kLargestOverrun, a.overrun_here * page);
  if (first || rose || a.curve_version % 16 == 0) changed();
}

// The first iteration of a job with a saved profile, which was made without it: optimizers make
// their state in it, and libraries what they keep. As no kind of its own it can't be taken for what
// the others are measured by. Its time counts as that of the set-up does.
void Governor::pass_over(Account& a) {
  uint64_t most = 0;
  for (uint32_t i = 0; i < a.recorder.length(); ++i)
    most = std::max<uint64_t>(most, a.recorder.held(i));
  learn_from_excess(a, false);
  a.iteration_kinds.pass_over();
  telemetry_->raise(a.id, kLargestOverrun, a.overrun_here * pool_.page_bytes());
  if (most <= a.curve.claim(0) || !a.curve.cover(a.recorder)) return;
  a.forecast.follow(a.curve, false);
  a.segments.cut(a.curve, split_);
  ++a.curve_version;
  changed();
}

// Before the curve covers it. A job that is distrusted runs alone, where nothing is an overrun; but
// only what stays within the claim, or the headroom, shows that it can be trusted again.
void Governor::learn_from_excess(Account& a, bool batch) {
  uint64_t most = budget_ / kMostHeadroomShare, peak = 0;
  for (uint32_t i = 0; i < a.recorder.length(); ++i)
    peak = std::max<uint64_t>(peak, a.recorder.held(i));
  bool within = !a.curve.known() || peak <= a.curve.claim(0) + headroom_;
  if (a.overrun_here > most || (a.distrusted > 0 && !within))
    a.distrusted = kDistrustFor;
  else if (a.distrusted > 0 && !batch)
    --a.distrusted;
  a.most_overrun = std::max(a.most_overrun, a.overrun_here);
  settle_headroom();
}

// As much as any job that is still here has overrun its claim by.
void Governor::settle_headroom() {
  uint64_t most = least_headroom_;
  for (const Account& a : accounts())
    if (a.id && !a.ended) most = std::max(most, a.most_overrun);
  headroom_ = std::min(most, budget_ / kMostHeadroomShare);
  telemetry_->header(kHeadroom, headroom_ * pool_.page_bytes());
}

void Governor::learn_kinds(Account& a) {
  PeakKinds at_peak = a.trace.finish();
  std::vector<Kinds::Made> made = a.trace.take_made();
  std::vector<LogRecord> log = a.trace.take_log(a.id, telemetry_->slot(a.id, kIterations));
  if (made.empty()) return;
  a.at_peak = at_peak;
  telemetry_->slot(a.id, kPeakPersistent, at_peak.persistent);
  telemetry_->slot(a.id, kPeakActivation, at_peak.activation);
  telemetry_->slot(a.id, kPeakTemporary, at_peak.temporary);
  a.profiled_log = std::move(log);
  a.kinds.learn(std::move(made));
}

void Governor::changed() {
  ++version_;
  changed_.notify_all();
}

void Governor::set_state(const Account& a, State state) {
  if (a.id) telemetry_->slot(a.id, kState, a.ended ? kEnded : state);
}

void Governor::publish_memory(const Account& a) {
  auto bytes = [](int64_t n) { return static_cast<uint64_t>(std::max<int64_t>(n, 0)); };
  int64_t in_slabs = a.live;
  for (uint32_t lies = 0; lies < kPlaces; ++lies) {
    int64_t live = a.live_at[lies];
    telemetry_->slot(a.id, static_cast<Slot>(kLivePersistent + lies), bytes(live));
    in_slabs -= live;
  }
  telemetry_->slot(a.id, kLiveInSlabs, bytes(in_slabs));
  telemetry_->slot(a.id, kReserved, bytes(a.reserved));
  telemetry_->slot(a.id, kReceived, pool_.counters().received[a.id]);
  telemetry_->slot(a.id, kMappings, a.mappings);
  telemetry_->slot(a.id, kEvents, fences_.events(a.id));
  telemetry_->slot(a.id, kDeviceWaits, a.device_waits);
  telemetry_->slot(a.id, kCpuWaits, a.cpu_waits);
  telemetry_->slot(a.id, kBadFrees, a.bad_frees);
}

// What was freed last lies in batches that are open. Who frees nothing more, or is gone, closes
// none: after a cut of the budget that memory would stay.
void Governor::close_for_trim() {
  {
    Lock lock(mutex_);
    if (pool_.backed() <= budget_) return;
  }
  for (uint32_t id = 0; id < kAccounts; ++id) fences_.close(id);
}

void Governor::tick() {
  close_for_trim();
  fences_.poll_all();
  Lock lock(mutex_);
  note_stopped();
  pool_.trim();
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
    publish_memory(a);
  }
  unpark_if_due(now_ns());
  if (parked_for_) parked_changed_.notify_all();  // who sleeps is parked once it has for long
  bring_back();
  send_aside();
  note_stranded();
  drop_leases_that_last();
  pump();  // progress alone may have lowered a claim or passed a permit's point
  resolve_wedge();
  make_way();
  end_passing();
  change_places();
  ticked_ns_ = now_ns();  // what was copied meanwhile is counted
}

PoolState Governor::pool_state() {
  Lock lock(mutex_);
  return {held_,     headroom_,           accounts_[0].held.load(std::memory_order_relaxed),
          budget_,   pool_.free_ranges(), cuts_given_up_,
          cut_needs_};
}

std::string Governor::check() {
  Lock lock(mutex_);
  uint64_t sum = 0;
  for (const Account& a : accounts_) sum += a.held.load(std::memory_order_relaxed);
  if (sum != held_) return "the accounts' pages do not sum to the total";
  if (held_ > budget_) return "more pages are held than the budget has";
  for (const Account& a : accounts_)
    if (a.lease && (!a.open || !a.trusted() || a.saved || split_ == Segments::kNone))
      return "a lease without an iteration that needs it";
  return pool_.check(held_);
}

}  // namespace gpushare
