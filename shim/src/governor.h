// Who may hold how much, and who may start: doors, permits, the safety check, waiting.
//
// One mutex guards it all together with the pool; a heap takes it once per page-sized step, never
// for a block that its pages already serve. Lock order: GIL, heap, governor. Nobody waits with a
// heap's lock or the GIL held.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "../include/gpushare.h"
#include "iteration_kinds.h"
#include "judge.h"

namespace gpushare {

constexpr uint64_t kMostHeadroomShare = 8;  // headroom is at most an eighth of the budget

// A job that was copied out and has no room to come back; pages. Nought: it may have.
struct Stranded {
  uint64_t for_ns, saved, kept, budget, needs;  // a budget of so much would do
};

// Arrives in Python as RuntimeError, as torch's own CPU allocation failures do.
class OutOfMemory : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

// A wait for memory that was ended for what its job was sent (interruption.h).
class Interrupted : public OutOfMemory {
  using OutOfMemory::OutOfMemory;
};

struct PoolState {
  uint64_t held, headroom, shared, budget;  // pages
  uint64_t free_ranges;
  uint64_t cuts_given_up, cut_needs;  // smaller budgets that were taken back; for how many pages
};

class Governor : private Judge {
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
  // `in_the_middle`: an iteration that is open counts only if its end has been marked.
  void end_job(uint32_t id, bool in_the_middle = false);
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
  // is false where that is away, or while another job forks: rest_on, then, without any lock that
  // others may want. That is false where it was held for long, and is not to be again.
  void begin_rest(uint32_t id, Rest rest = Rest::kInPython);
  bool end_rest(uint32_t id, Rest rest = Rest::kInPython);
  bool rest_on(uint32_t id, Rest rest = Rest::kInPython);
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
  // Before a fork: waits until each other job has stopped at its next allocation, waits here for
  // something else, or rests. One in no iteration that makes none for a while computes nothing that
  // a child could hang on.
  bool park_others(uint32_t id, uint64_t timeout_ns);
  // A thread of the job that is about to fork waits for something that another one of them may
  // have in hand while it parks the others: until it says that it no longer does, it is parked.
  void await_turn_to_fork(uint32_t id, bool waits);
  bool forking() const { return parked_for_.load(std::memory_order_relaxed) != 0; }
  void stop_for_fork(uint32_t id);
  // They go on once the job has begun an iteration, or has not forked again for so long, or did so
  // for long.
  void unpark_others(uint32_t id);
  std::chrono::nanoseconds between_forks = std::chrono::milliseconds(5);  // set before any
  std::chrono::nanoseconds longest_forks = std::chrono::milliseconds(250);
  // Of who has a lock in hand that others may want, for memory.
  static constexpr std::chrono::nanoseconds longest_with_lock = std::chrono::seconds(2);
  std::chrono::nanoseconds longest_hold = std::chrono::seconds(1);  // of a thread that has woken

  // Whether the calling thread is one that has entered for the account. Others (torch's own, or an
  // extension's) come with a stream of the job; while one of them waits it is counted as the job's,
  // or it would be taken for another one, which computes. To be set before there are any.
  bool (*has_entered)(uint32_t id) = [](uint32_t) { return true; };

  // Does something to the job's memory, if that is there; it does not leave meanwhile.
  void unless_copied_out(uint32_t id, const std::function<void()>& act);
  // Every few milliseconds, by the sampler: publishes telemetry and resolves a wedge.
  void tick();
  // Lets doors open when it is their time, though nothing else happens then: now, or whenever a
  // start is planned until `end_ns`. `next_look`: when that is; kNotPredicted if none is.
  void look_at_doors();
  void look_at_doors_until(uint64_t end_ns);
  using Judge::longest_computing;
  using Judge::next_look;
  // `unhindered`: and none of the job's threads waits here.
  bool iterating_past_profile(uint32_t id, bool unhindered);
  std::string check();

 private:
  void make_ready(DeviceWork& work, size_t i, Stream stream);
  uint64_t map_some(DeviceWork& work, Stream stream);

  void settle_budget();
  void want_budget(uint64_t pages);

  // What becomes of a step; what is promised to others may end by it.
  Judged decide(Account& a, uint64_t n, bool no_wait, uint64_t waited_ns);
  void note_first_graph(Account& a);
  void drop_leases();
  void trim_leases();
  void drop_leases_that_last();
  void promise(Account& a, uint64_t held);
  bool try_charge_locked(uint32_t id, uint64_t n, bool no_wait);
  void add_pages(Account& a, uint64_t n, bool over);
  void remove_pages(Account& a, uint64_t n);
  void publish_held(const Account& a, uint64_t now);
  void note_overrun(Account& a);
  [[noreturn]] void refuse(Account& a, uint64_t n, uint64_t bytes, Lock& lock,
                           bool interrupted = false);
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
  static void count_rest(Account& a, Rest rest, int by);
  bool hold_for_fork(Account& a, Lock& lock);
  void await_return(Account& a, Lock& lock);
  ForkWait begin_pause(Account& a);
  void end_pause(Account& a, ForkWait w);
  ForkWait begin_fork_wait(Account& a);
  bool park_all_but(uint32_t id, std::chrono::steady_clock::time_point until, Lock& lock);
  void unpark_if_due(uint64_t now);
  void end_park();
  // What passed since the job began to wait for memory is no part of its iteration.
  void pause(Account& a, uint64_t now_ns);
  void note_wake(const Waiter& w, uint64_t now_ns);
  void note_wait(Waiter& w, uint64_t now_ns);
  void sleep(Waiter& w, Lock& lock);
  void sleep_for_a_while(Waiter& w, Lock& lock);
  void release(Waiter& w);

  void plan_look(Waiter& w, Shut shut);
  void integrate(Account& a, uint64_t now_ns);
  void open(Account& a);
  void close(Account& a, bool in_the_middle = false);
  void count_iteration(Account& a, IterationKinds::Times times, bool batch);
  void learn(Account& a, IterationKinds::Times times, bool batch);
  void pass_over(Account& a);
  void learn_from_excess(Account& a, bool batch);
  void settle_headroom();
  void learn_kinds(Account& a);
  void pump(bool for_permits = false);
  void grant_memory();
  void grant(Waiter& w, bool over);
  void open_doors(bool for_permits);
  void pump_freed(uint64_t since_ns);
  uint64_t granted_now() const;
  void changed();
  void set_state(const Account& a, State state);
  void publish_memory(const Account& a);
  void close_for_trim();
  void resolve_wedge();
  bool grant_reserve(bool in_iterations);

  void send_aside();
  void start_job(Account& a);
  void end_locked(Account& a, bool in_the_middle = false);
  void note_stranded();
  bool send_away(Account& a);
  void come_back(Account& a);
  bool copy_out(Account& a);
  void note_copying(uint64_t begun_ns);
  void nobody_ran_for(uint64_t ns);
  void note_stopped();
  bool take_out(Account& a);
  void restore(Account& a, uint64_t more);
  Account* find_passer(const Waiter& w);
  bool give_up_holding(bool at_once);
  void end_passing();
  void change_places();
  void note_moves(Account& a, uint64_t now);
  Account* find_sleeper(const Waiter& w, uint64_t now);
  void make_way();
  void note_saved(const Account& a);
  bool try_return(Waiter& w);
  void bring_back();
};

}  // namespace gpushare
