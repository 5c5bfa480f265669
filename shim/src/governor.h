// Who may hold how much, and who may start: doors, permits, the safety check, waiting.
//
// One mutex guards it all together with the pool; a heap takes it once per page-sized step, never
// for a block that its pages already serve. Lock order: GIL, heap, governor. Nobody waits with a
// heap's lock or the GIL held.
#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <mutex>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "../include/gpushare.h"
#include "account.h"
#include "allocation_log.h"
#include "decisions.h"
#include "fences.h"
#include "forecast.h"
#include "iteration_kinds.h"
#include "pool.h"
#include "safety.h"
#include "telemetry.h"
#include "waiter.h"

namespace gpushare {

constexpr uint64_t kMostHeadroomShare = 8;  // headroom is at most an eighth of the budget

enum class Policy { kUnmanaged, kTemporal, kZico };
// Who of those that wait at their doors goes first: who asked first; who has been granted the least
// memory for the least time; whose rank is lowest.
enum class Order { kFifo, kFair, kRanked };

// A job that was copied out and has no room to come back; pages. Nought: it may have.
struct Stranded {
  uint64_t for_ns, saved, kept, budget, needs;  // a budget of so much would do
};

// Arrives in Python as RuntimeError, as torch's own CPU allocation failures do.
class OutOfMemory : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct PoolState {
  uint64_t held, headroom, shared, budget;  // pages
  uint64_t free_ranges;
  uint64_t cuts_given_up, cut_needs;  // smaller budgets that were taken back; for how many pages
};

class Governor {
  friend class Simulation;

 public:
  Governor(Device* device, Policy policy, uint64_t page_bytes, uint64_t budget_pages,
           uint64_t address_pages, Telemetry* telemetry);

  Fences& fences() { return fences_; }
  bool asynchronous() const { return device_->asynchronous(); }
  Pool& pool() { return pool_; }  // its page arithmetic needs no lock; all else does
  Account& account(uint32_t id) { return accounts_[id]; }
  AllocationLog& log() { return log_; }              // has a lock of its own, the innermost
  uint64_t budget_pages() const { return budget_; }  // before jobs run
  // Raises or lowers the budget, in pages; see budget.cpp. Why not, or nothing.
  std::string set_budget(uint64_t pages);

  // Charges n pages. try_charge never waits; charge waits until the step is safe, or throws
  // OutOfMemory. With no_wait the caller holds a lock that other jobs may want: it takes what the
  // budget has, and if that is too little it waits for others, but not for ever. `bytes` is what
  // the user asked for, for the message.
  bool try_charge(uint32_t id, uint64_t n, bool no_wait);
  void charge(uint32_t id, uint64_t n, bool no_wait, uint64_t bytes);
  void uncharge(uint32_t id, uint64_t n);

  // Pool operations under the governor's lock; pages that are held have been charged.
  PageIndex reserve_range(uint64_t n);
  void release_range(PageIndex first, uint64_t n);
  // try_charge of `missing` pages, and hold of the range they lie in; not where that stalls, unless
  // it may.
  enum class Took { kYes, kWaits, kStalls };
  Took try_hold(PageIndex first, uint64_t n, uint64_t missing, uint32_t id, Stream stream,
                bool no_wait, bool may_stall, DeviceWork& work);
  PageIndex hold_range(uint64_t n, uint32_t id, Stream stream, DeviceWork& work);
  // try_charge and hold_range; kNoPage if either can't be.
  PageIndex try_hold_range(uint64_t n, uint32_t id, Stream stream, bool no_wait, DeviceWork& work);
  // Whether to hold one of these pages now would make the CPU wait for the device.
  bool stalls(PageIndex first, uint64_t n);
  // Does what pages that were held need before `stream` uses them. Calls the driver: no lock may be
  // in hand. Throws OutOfMemory or DeviceFailure; what is left of `work` can be done again, or the
  // pages be given up with it.
  void perform(DeviceWork& work, uint32_t id, Stream stream);
  void forget_stream(Stream stream);
  // Uncharges, and wakes whoever can go on. The stream is read under the lock, since it may end.
  // What is `undone` of their work says which of the pages the job can't have used.
  void unhold(PageIndex first, uint64_t n, uint32_t id, const std::atomic<Stream>& stream,
              bool release, const DeviceWork* undone = nullptr);

  // Opens the account of a job. A queued one counts for nothing until it is admitted.
  int32_t begin_job(uint32_t warmup, bool queued = false);
  void admit_job(uint32_t id);
  void end_job(uint32_t id);
  void cancel(uint32_t id);
  void uncancel(uint32_t id);
  Stranded stranded(uint32_t id);
  // Ends the job, whose threads never go on. False if it can come back after all.
  bool abandon(uint32_t id);
  // A thread works for the job from now on, or no longer. It may find the job's memory copied out,
  // and waits until it is back.
  void thread_enters(uint32_t id);
  void thread_leaves(uint32_t id);
  // Between these the calling thread, one of the job's, uses nothing that the job holds. end_rest
  // is false where that is away: rest_until_back, then, without any lock that others may want.
  void begin_rest(uint32_t id);
  bool end_rest(uint32_t id);
  void rest_until_back(uint32_t id);
  void mark(uint32_t id);
  // A node of an autograd graph was made: the first one ends the set-up, and the last one that
  // `watch` asked for ends an iteration.
  // What is made while `grad_mode` is off belongs to an evaluation all the same (torch numbers the
  // node of a function of the script's own there too).
  void note_graph(uint32_t id, bool (*grad_mode)() = [] { return true; }) {
    Account& a = accounts_[id];
    if (a.setting_up.load(std::memory_order_relaxed)) mark(id);
    if (a.stop.load(std::memory_order_relaxed) == Stop::kWhereMemoryFell && grad_mode())
      note_first_graph(a);
    if (a.nodes_to_mark.load(std::memory_order_relaxed) > 0 && a.nodes_to_mark.fetch_sub(1) == 1)
      mark(id);
  }
  // Marks at the n-th node from now on; 0: not any more. Returns what was left of the last watch.
  int32_t watch(uint32_t id, int32_t n) { return accounts_[id].nodes_to_mark.exchange(n); }
  // Whether an allocation that found Account::stop at something is to pass the door. Marks where
  // memory tells that a batch of an evaluation has ended.
  bool stops_here(uint32_t id);
  void pass_door(uint32_t id);  // waits; called by the allocation after a mark
  // One of the kinds of iterations of a saved profile, after its curve.
  void add_kind(uint32_t id, Curve curve, uint64_t seen, std::span<const uint64_t> followed_by);
  // An iteration takes `duration_ns`, and no less than until its last allocation.
  void set_curve(uint32_t id, std::vector<uint32_t> held, std::vector<uint64_t> time_ns,
                 uint64_t residue_pages, uint64_t duration_ns = 0);
  PoolState pool_state();
  // What a script may ask of its memory; see usage.cpp.
  gs_memory memory(uint32_t id);
  void reset_memory_peaks(uint32_t id);
  void reset_memory_totals(uint32_t id);
  void set_limit(uint32_t id, uint64_t pages);
  // Runs `read` under the lock, for what is not worth a copy of its own.
  void inspect(uint32_t id, const std::function<void(const Account&)>& read);
  // All at once: no door opens on a mixture of two plans.
  void set_permits(const std::vector<PairPermit>& permits);
  // Where jobs take turns, one goes on through its door for `quantum_ns`.
  void set_order(Order order, uint64_t quantum_ns);
  void set_rank(uint32_t id, int64_t rank);
  // Which jobs start no iterations for now (aside.cpp): bit i is account i.
  void set_aside(uint64_t accounts);
  uint64_t copied_out();  // likewise
  // Leases by segment, of which each allocates or frees so many pages; Segments::kNone: no leases.
  void set_split(uint64_t pages);
  DecisionLog& decisions() { return decisions_; }
  void flush_logs() { log_.flush(), decisions_.flush(); }
  uint64_t wait_change(uint64_t seen, uint64_t timeout_ns);
  // Before a fork: waits until each other job is at its door, or waits for memory. A job that is
  // still setting up stops at its next allocation; if it makes none for a while it computes nothing
  // that a child could hang on.
  bool park_others(uint32_t id, uint64_t timeout_ns);
  bool forking() const { return forking_.load(std::memory_order_relaxed); }
  void stop_for_fork(uint32_t id);
  void unpark_others(uint32_t id);

  // Does something to the job's memory, if that is there; it does not leave meanwhile.
  void unless_copied_out(uint32_t id, const std::function<void()>& act);
  // Every few milliseconds, by the sampler: publishes telemetry and resolves a wedge.
  void tick();
  // Lets doors open when it is their time, though nothing else happens then: now, or whenever a
  // start is planned until `end_ns`. `next_look`: when that is; kNotPredicted if none is.
  void look_at_doors();
  void look_at_doors_until(uint64_t end_ns);
  uint64_t next_look() const;
  // `unhindered`: and none of the job's threads waits here.
  bool iterating_past_profile(uint32_t id, bool unhindered);
  std::string check();

 private:
  enum class Verdict { kGo, kWait, kImpossible };
  struct Judged {
    Verdict verdict;
    Shut shut = {};     // what it would wait for
    bool over = false;  // beyond the claim
  };
  using Lock = std::unique_lock<std::mutex>;

  void make_ready(DeviceWork& work, size_t i, Stream stream);
  uint64_t map_some(DeviceWork& work, Stream stream);

  uint64_t least_budget() const;
  void settle_budget();
  void want_budget(uint64_t pages);
  bool cut_fits() const;
  uint64_t planned_budget() const { return std::min(budget_, wanted_budget_); }

  Judged judge(Account& a, uint64_t n, bool no_wait, uint64_t waited_ns);
  bool safe_after(const Account& a, uint64_t n, uint64_t claim, uint64_t limit) const;
  uint64_t claim_of(const Account& a) const;
  void note_first_graph(Account& a);
  void drop_leases();
  void trim_leases();
  void drop_leases_that_last();
  uint64_t lease_for(const Account& a) const;
  void promise(Account& a, uint64_t held);
  bool others_open(const Account& a) const;
  bool others_live(const Account& a) const;
  // What is left of it when the job is at its door.
  uint64_t keeps(const Account& a) const;
  // Whether the job could run by itself beside what the others keep, and `more` pages.
  bool fits_beside_residues(const Account& a, uint64_t more) const;
  // Whether each of the others could still run by itself; of two that are both away, each would
  // keep the other one away for ever, so who comes back looks at `to_those_here` alone.
  bool leaves_room(const Account& a, uint64_t n, bool to_those_here = false) const;
  // Whether the others' doors alone would let the waiter go on; if not, it waits for one to end,
  // and nobody makes way for it.
  bool has_a_place(const Waiter& w) const;
  bool others_measured(const Account& a) const;
  Judged judge_alone(const Account& a, uint64_t n, uint64_t waited_ns) const;
  Judged judge_set_up(const Account& a, uint64_t n, uint64_t waited_ns);
  // Of the other jobs, among those in an iteration if there is one, who holds most.
  uint32_t largest_other(const Account& a) const;
  // The shared account and those of the jobs so far.
  std::span<const Account> accounts() const { return {&accounts_[0], jobs_ + 1}; }
  bool try_charge_locked(uint32_t id, uint64_t n, bool no_wait);
  void add_pages(Account& a, uint64_t n, bool over);
  void remove_pages(Account& a, uint64_t n);
  void publish_held(const Account& a, uint64_t now);
  void note_overrun(Account& a);
  [[noreturn]] void refuse(Account& a, uint64_t n, uint64_t bytes, Lock& lock,
                           bool interrupted = false);
  uint64_t others_hold(const Account& a) const;  // pages of other jobs
  std::string figures(const Account& a, uint64_t n, uint64_t bytes) const;
  void wait_for_memory(Account& a, uint64_t n, bool no_wait, uint64_t bytes, Shut shut, Lock& lock);
  // Waiting in halves: who has no thread to sleep in (simulation.cpp) does the second one when the
  // waiter is done. come_to_door says whether there is something to wait for.
  void begin_memory_wait(Waiter& w, Shut shut);
  void end_memory_wait(Waiter& w);
  bool come_to_door(Waiter& w);
  void leave_door(Waiter& w, Lock& lock);
  Waiter begin_other_wait(const Account& a, uint64_t pages, Shut shut) const;
  void end_other_wait(Waiter& w);
  Waiter begin_wait_for_return(Account& a);
  void end_wait_for_return(Waiter& w);
  // What passed since the job began to wait for memory is no part of its iteration.
  void pause(Account& a, uint64_t now_ns);
  void note_wake(const Waiter& w, uint64_t now_ns);
  void note_wait(Waiter& w, uint64_t now_ns);
  void sleep(Waiter& w, Lock& lock);
  void release(Waiter& w);

  // What keeps the job's door shut, if anything does; see openings.cpp.
  Shut shut_by(const Account& a, Waiter* self) const;
  Shut shut_by_others_waiting(const Account& a, const Waiter* self) const;
  Shut shut_by_memory_waiters(bool only_saved) const;
  Shut shut_beside_others(const Account& a, Waiter* self) const;
  Shut shut_by_permits(const Account& a, Waiter* self) const;
  bool lingers(const Account& o, const Account& a) const;
  UnderWay progress_of(const Account& o) const;
  std::vector<UnderWay> others_under_way(const Account& a) const;
  const Forecast& forecast_of_next(const Account& a) const;
  bool forecast_fits(const Account& a, Waiter* self) const;
  uint64_t room_for_iterations(const Account& a) const;
  uint64_t planned_wait(const Account& a) const;
  uint64_t predicted_turn_wait(const Account& a, const Account& o) const;
  uint64_t predicted_memory_wait(const Account& a, uint64_t n) const;
  uint64_t permit_wait(const Account& a, const Account& o) const;
  uint64_t planned_for(const Account& a, Shut shut) const;
  void plan_look(Waiter& w, Shut shut);
  template <typename T>
  T standing(const Account& a, T Account::*of) const;
  int compare(const Account& a, const Account& b) const;
  bool starts_apart(const Account& a, const Account& b) const;
  bool take_turns(const Account& a, const Account& b) const;
  bool had_the_last_turn(const Account& a) const;
  bool keeps_turn(const Account& a) const;
  bool waits_for_turn_of_another(const Account& a, const Account& newcomer) const;
  bool has_quanta(int order) const;
  std::vector<Waiter*> doors_in_order() const;
  void integrate(Account& a, uint64_t now_ns);
  double least_granted(const Account& a) const;
  void open(Account& a);
  void close(Account& a);
  void learn(Account& a, uint64_t duration_ns, bool batch);
  void learn_from_excess(Account& a, bool batch);
  void settle_headroom();
  void learn_kinds(Account& a);
  void pump(bool for_permits = false);
  void pump_freed(uint64_t since_ns);
  uint64_t granted_now() const;
  void changed();
  void set_state(const Account& a, State state);
  void publish_memory(const Account& a);
  bool is_asleep(const Account& a, uint64_t for_ns) const;
  bool all_parked(uint32_t except, bool set_up_too) const;
  enum class Stuck { kInIterations, kEverywhere, kBesideOthers };
  bool stuck(Stuck where) const;
  bool all_threads_wait(bool or_rest) const;
  void resolve_wedge();

  bool is_told_to_stand_aside(const Account& a) const;
  bool stands_aside(const Account& a) const;
  void send_aside();
  bool has_room_to_return(const Account& a, uint64_t pages) const;
  void start_job(Account& a);
  void end_locked(Account& a);
  uint64_t kept_by_nobody_here() const;
  bool has_no_way_back(const Account& a) const;
  void note_stranded();
  bool stands_still(const Account& a) const;
  bool send_away(Account& a);
  void come_back(Account& a);
  bool can_leave(const Account& a) const;
  bool may_leave(const Waiter& w) const;
  bool would_help(const Waiter& w, uint64_t more) const;
  uint64_t could_leave_for(const Waiter& w) const;
  bool helps(const Waiter& w, bool with_others, bool only_for_room) const;
  Waiter* find_leaver(bool only_for_room) const;
  bool copy_out(Account& a);
  bool take_out(Account& a);
  void restore(Account& a, uint64_t more);
  bool has_waiter(const Account& a) const;
  bool wakes_away(const Account& a) const;
  bool sleeps_away(const Account& a) const;
  bool makes_room_for(const Account& a, uint64_t pages) const;
  void change_places();
  void note_moves(Account& a, uint64_t now);
  bool waits_for_sleeper(const Waiter& w, const Account& a, uint64_t now) const;
  Account* find_sleeper(const Waiter& w, uint64_t now);
  void make_way();
  void note_saved(const Account& a);
  Verdict judge_return(const Account& a, uint64_t pages) const;
  bool try_return(Waiter& w);
  void bring_back();

  std::mutex mutex_;
  Device* device_;
  Fences fences_;
  Pool pool_;
  Policy policy_;
  uint64_t budget_, wanted_budget_;
  const uint64_t least_headroom_;
  uint64_t headroom_, held_ = 0, held_peak_ = 0;
  uint64_t cuts_given_up_ = 0, cut_needs_ = 0;
  std::vector<Account> accounts_{kAccounts};
  uint32_t jobs_ = 0;
  std::list<Waiter*> memory_waiters_, door_waiters_;
  uint32_t parked_for_ = 0;  // the job that forks; 0: nobody
  uint32_t forks_ = 0;       // of its threads at once
  std::atomic<bool> forking_{false};
  std::condition_variable parked_changed_, changed_, looks_changed_;
  uint64_t looks_at_ns_ = 0;  // when the sampler looks at doors again; 0: it is busy, and will see
  uint64_t most_saved_ = 0;   // largest of the accounts' `saved` since it was last nought
  uint64_t version_ = 1, last_free_ns_ = 0, wedged_since_ns_ = 0;
  // What change_places saw last, and when it was otherwise.
  uint64_t blocks_seen_ = 0, iterations_seen_ = 0, moved_ns_ = 0, ended_ns_ = 0;
  Order order_ = Order::kFifo;
  uint64_t quantum_ns_ = 0;
  uint64_t split_ = Segments::kNone;
  uint64_t aside_ = 0;
  uint64_t openings_ = 0;
  std::atomic<uint32_t> sleepers_{0};  // threads that wait here
  uint64_t freeing_since_ns_ = 0;      // while memory that came back is given out to them; else 0
  uint32_t comes_again_ = 0;  // a job that ends an iteration and is about to ask for the next
  Telemetry* telemetry_;
  AllocationLog log_;
  DecisionLog decisions_;
};

}  // namespace gpushare
