// When memory that one stream has used may be used by another, without the CPU waiting for either.
//
// Memory is freed on the CPU while the device may still be at work on it. Freed memory belongs to
// the open batch of its account. When a batch has enough bytes an event is recorded on each stream
// of the account, after the last free of the batch: whatever the job had issued until then on any
// of them comes before it (Zico, section 6.2; that a side stream still reads what its job has freed
// is correct in a job by itself, if the job makes the first stream wait, and must stay so). Who
// takes the memory makes its own stream wait for these events on the device. An event recorded only
// then would wait for all that was issued since, so open batches are taken last.
//
// Each account has a lock of its own. No other lock is held while the driver is called, but the
// governor's where contents leave or come back (saving.cpp).
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <mutex>
#include <utility>
#include <vector>

#include "device.h"
#include "gil.h"

namespace gpushare {

using Batch = uint64_t;  // of an account, counted from 1; 0 has always passed

// Memory that an account has freed can't be passed on now: the account captures a CUDA graph, and
// an event that is recorded on a stream meanwhile would become part of it.
struct CaptureUnderWay : DeviceFailure {
  explicit CaptureUnderWay(uint32_t by);
  uint32_t by;
};

class Fences {
 public:
  static constexpr Stream kGone = UINT64_MAX;  // stands for a stream that was destroyed
  static constexpr uint64_t kLeastBatch = 8 << 20, kMostBatch = 256 << 20;  // bytes
  static constexpr uint64_t kLeastShare = 64;  // of the budget, where that is less than kLeastBatch

  Fences(Device* device, uint32_t accounts, uint64_t budget_bytes);

  // The account allocates or uses memory on the stream. Once per stream at least.
  void add_stream(uint32_t account, Stream stream);
  // Before a stream is destroyed: marks what it has been given, for every account that uses it, and
  // does not touch it again. Another stream may come to have the same handle. A capture of it is
  // given up.
  void remove_stream(Stream stream);
  // The same where only this account no longer uses it.
  void remove_stream(Stream stream, uint32_t account);
  // A capture of it that is under way, by the thread that began that.
  void abandon_capture(Stream stream);
  std::vector<Stream> streams(uint32_t account);

  // The batch that memory freed now belongs to; 0 where nothing is asynchronous.
  Batch open(uint32_t account) const {
    return asynchronous_ ? of_[account].open.load(std::memory_order_seq_cst) : 0;
  }
  void count(uint32_t account, uint64_t bytes) {
    if (asynchronous_) of_[account].bytes.fetch_add(bytes, std::memory_order_relaxed);
  }
  // The same job uses them again already, so nobody else will wait for them. No matter if the batch
  // that they were freed in is closed by now.
  void uncount(uint32_t account, Batch batch, uint64_t bytes);
  // Closes the open batch if it has enough bytes. Called with no lock in hand: to record an event
  // waits for the device where a stream has all the work that it can take. Who has the GIL leaves
  // that to the job's next allocation, or the sampler.
  void close_if_full(uint32_t account) {
    Account& a = of_[account];
    if (asynchronous_ &&
        a.bytes.load(std::memory_order_relaxed) >= a.batch_bytes.load(std::memory_order_relaxed) &&
        !holds_gil())
      close(account);
  }
  // Closes the open batch if it has any bytes: at doors, where a job pauses by itself. While a
  // stream of the account is captured for a graph no event can be recorded: it stays open.
  void close(uint32_t account);

  // As far as poll() has seen.
  bool passed(uint32_t account, Batch batch) const {
    return batch <= of_[account].passed.load(std::memory_order_acquire);
  }
  bool closed(uint32_t account, Batch batch) const {
    return batch < of_[account].open.load(std::memory_order_relaxed);
  }
  // Whether the batch can be waited for from now on, whatever its account does: an open one is
  // closed for that, unless the account captures a graph.
  bool settles(uint32_t account, Batch batch);
  void poll(uint32_t account);
  void poll_all();

  // Makes `waiter` wait on the device for what the batch waits for: for so many events. Closes an
  // open batch. Throws DeviceFailure; CaptureUnderWay if the account captures a graph, or if `by`
  // does, whose stream the waiter is: the wait would break that capture.
  uint64_t wait(Stream waiter, uint32_t account, Batch batch, uint32_t by);
  // The same on the CPU. False if the batch has passed already.
  bool finish(uint32_t account, Batch batch);

  // That others wait for a capture to end; to be set before there are any.
  std::chrono::nanoseconds longest_capture = std::chrono::seconds(10);

  struct Counters {
    std::atomic<uint64_t> events{0}, device_waits{0}, cpu_waits{0}, closed_early{0};
  };
  const Counters& counters() const { return counters_; }
  // Recorded on the account's streams so far.
  uint64_t events(uint32_t account) const {
    return of_[account].events.load(std::memory_order_relaxed);
  }

 private:
  struct Closed {
    Batch batch;
    std::vector<std::pair<Stream, Event>> events;
    std::vector<Stream> late;  // of which it has none yet: a capture had begun there
  };
  struct Account {
    std::mutex mutex;
    std::atomic<Batch> open{1}, passed{0};
    std::atomic<uint64_t> bytes{0}, batch_bytes{0}, events{0};
    std::vector<Stream> streams;
    std::vector<std::pair<Stream, Event>> removed;  // marks of streams that are gone, not passed
    std::deque<Closed> closed;                      // oldest first, none of them passed
    std::vector<std::pair<Stream, Batch>>
        waited;                   // latest batch that a stream was made to wait for
    uint32_t closed_in_time = 0;  // in a row
  };

  bool capturing(const Account& a) const;
  void finish_before_capture(Account& a, Stream stream);
  void count_events(Account& a, uint64_t n);
  void close_locked(Account& a);
  void record(Account& a, Closed& closed, Stream s);
  bool complete(Account& a, Closed& closed);
  void close_early(Account& a);
  void poll_locked(Account& a);
  static Closed* oldest_from(Account& a, Batch batch);
  const Closed* find(Account& a, Batch batch);
  uint32_t number(const Account& a) const { return static_cast<uint32_t>(&a - of_.data()); }

  Device* device_;
  bool asynchronous_;
  uint64_t least_batch_;
  std::vector<Account> of_;
  Counters counters_;
};

}  // namespace gpushare
