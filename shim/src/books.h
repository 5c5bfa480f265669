// What is known of all jobs together: their accounts, who waits, the pool. judge.h asks, governor.h
// changes it. One mutex guards it all.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <list>
#include <mutex>
#include <span>
#include <vector>

#include "account.h"
#include "allocation_log.h"
#include "decisions.h"
#include "fences.h"
#include "pool.h"
#include "telemetry.h"
#include "waiter.h"

namespace gpushare {

enum class Policy { kUnmanaged, kTemporal, kZico };
// Who of those that wait at their doors goes first: who asked first; who has been granted the least
// memory for the least time; whose rank is lowest.
enum class Order { kFifo, kFair, kRanked };

class Books {
 protected:
  using Lock = std::unique_lock<std::mutex>;

  Books(Device* device, Policy policy, uint64_t page_bytes, uint64_t budget_pages,
        uint64_t address_pages, Telemetry* telemetry);

  // The shared account and those of the jobs so far.
  std::span<const Account> accounts() const { return {&accounts_[0], jobs_ + 1}; }

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
  // The job that forks; 0: nobody. Written under the lock.
  std::atomic<uint32_t> parked_for_{0};
  uint64_t parked_since_ns_ = 0, stops_within_from_ns_ = 0, parks_ended_ = 0;
  bool parked_in_vain_ = false;  // for the last fork of that job
  uint64_t unpark_at_ns_ = 0;    // it has forked, and may again until then; 0: else
  uint32_t forks_ = 0;           // of its threads at once
  std::condition_variable parked_changed_, changed_, looks_changed_;
  uint64_t looks_at_ns_ = 0;  // when the sampler looks at doors again; 0: it is busy, and will see
  uint64_t copying_ns_ = 0;   // that pages were copied out and back, under the lock
  uint64_t alone_since_ns_ = 0;  // when an iteration last ended or left, or one came back
  uint64_t ticked_ns_ = 0;       // when the sampler last looked; 0: never
  uint64_t most_saved_ = 0;      // largest of the accounts' `saved` since it was last nought
  uint64_t version_ = 1, last_free_ns_ = 0, wedged_since_ns_ = 0;
  // What change_places saw last, and when it was otherwise.
  uint64_t blocks_seen_ = 0, iterations_seen_ = 0, moved_ns_ = 0, ended_ns_ = 0;
  Order order_ = Order::kFifo;
  uint64_t quantum_ns_ = 0;
  uint64_t split_ = Segments::kNone;
  uint64_t aside_ = 0;
  bool any_passed_ = false;  // when that was last looked for (passing.cpp)
  uint64_t openings_ = 0;
  uint64_t moment_ = 1;                // until the next one, who has a place does not change
  std::atomic<uint32_t> sleepers_{0};  // threads that wait here
  uint64_t freeing_since_ns_ = 0;      // while memory that came back is given out to them; else 0
  uint32_t comes_again_ = 0;  // a job that ends an iteration and is about to ask for the next
  Telemetry* telemetry_;
  AllocationLog log_;
  DecisionLog decisions_;
};

}  // namespace gpushare
