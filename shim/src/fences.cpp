#include "fences.h"

#include <algorithm>
#include <utility>

#include "../include/gpushare.h"

namespace gpushare {

namespace {
constexpr uint32_t kGrowAfter = 64;  // batches in a row that nobody wanted while they were open
}

CaptureUnderWay::CaptureUnderWay(uint32_t account)
    : DeviceFailure(
          "memory that a job has freed can't be passed on while that job captures a CUDA graph"),
      by(account) {}

Fences::Fences(Device* device, uint32_t accounts, uint64_t budget_bytes)
    : device_(device),
      asynchronous_(device->asynchronous()),
      least_batch_(std::min(kLeastBatch, budget_bytes / kLeastShare)),
      of_(accounts) {
  for (Account& a : of_) a.batch_bytes = least_batch_;
}

void Fences::add_stream(uint32_t account, Stream stream) {
  if (!asynchronous_) return;
  Account& a = of_[account];
  std::lock_guard lock(a.mutex);
  if (std::ranges::find(a.streams, stream) == a.streams.end()) a.streams.push_back(stream);
}

void Fences::remove_stream(Stream stream) {
  if (!asynchronous_) return;
  abandon_capture(stream);
  for (uint32_t id = 0; id < of_.size(); ++id) remove_stream(stream, id);
}

void Fences::remove_stream(Stream stream, uint32_t account) {
  if (!asynchronous_) return;
  bool captured = device_->capturing(stream);
  Account& a = of_[account];
  if (captured) finish_before_capture(a, stream);
  std::lock_guard lock(a.mutex);
  std::erase_if(a.waited, [&](const auto& w) { return w.first == stream; });
  if (std::erase(a.streams, stream) == 0) return;
  for (Closed& c : a.closed) {
    for (auto& [of, event] : c.events)
      if (of == stream) of = kGone;
    std::erase(c.late, stream);
  }
  if (captured) return;
  // Every batch waits for the mark from now on: memory that the stream used may be freed later.
  a.removed.emplace_back(kGone, device_->record(stream));
  count_events(a, 1);
}

// A stream that another thread captures takes no mark. What goes there never runs; for what was
// issued before, the last event is waited for: where torch captures, Runtime::begin_capture has had
// it recorded. Others may free and poll meanwhile.
void Fences::finish_before_capture(Account& a, Stream stream) {
  Event last = 0;
  {
    std::lock_guard lock(a.mutex);
    for (const Closed& c : a.closed)
      for (const auto& [of, event] : c.events)
        if (of == stream) last = event;
  }
  try {
    device_->finish(last);
  } catch (const DeviceFailure&) {
    // The device is lost: whoever wants the memory is told.
  }
}

void Fences::abandon_capture(Stream stream) {
  if (asynchronous_ && device_->capturing(stream)) device_->abandon_capture(stream);
}

std::vector<Stream> Fences::streams(uint32_t account) {
  Account& a = of_[account];
  std::lock_guard lock(a.mutex);
  return a.streams;
}

void Fences::uncount(uint32_t account, Batch batch, uint64_t bytes) {
  if (!asynchronous_ || open(account) != batch) return;
  std::atomic<uint64_t>& counted = of_[account].bytes;
  uint64_t before = counted.load(std::memory_order_relaxed);
  // The batch may be closed meanwhile.
  while (!counted.compare_exchange_weak(before, before - std::min(before, bytes),
                                        std::memory_order_relaxed)) {
  }
}

bool Fences::capturing(const Account& a) const {
  return std::ranges::any_of(a.streams, [this](Stream s) { return device_->capturing(s); });
}

void Fences::count_events(Account& a, uint64_t n) {
  counters_.events.fetch_add(n, std::memory_order_relaxed);
  a.events.fetch_add(n, std::memory_order_relaxed);
}

// A capture may have begun since it was looked for. What was recorded is a part of it then, and
// nobody may ask for it, nor wait for it, ever.
void Fences::record(Account& a, Closed& closed, Stream s) {
  Event event = device_->record(s);
  count_events(a, 1);
  if (device_->capturing(s)) {
    device_->forget_event(event);
    closed.late.push_back(s);
  } else {
    closed.events.emplace_back(s, event);
  }
}

// Whether the batch has all its events: those that came too late for a capture are recorded once
// that has ended. So are those of a capture that had begun and ended when it was looked for.
bool Fences::complete(Account& a, Closed& closed) {
  std::erase_if(closed.events, [&](const auto& e) {
    if (!device_->spoilt(e.second)) return false;
    device_->forget_event(e.second);
    if (e.first != kGone) closed.late.push_back(e.first);
    return true;
  });
  auto captured = [this](Stream s) { return device_->capturing(s); };
  if (std::ranges::any_of(closed.late, captured)) return false;
  for (Stream s : std::exchange(closed.late, {})) record(a, closed, s);
  return closed.late.empty();
}

void Fences::close_locked(Account& a) {
  // First the number, then the events: what is freed from here on belongs to the next batch.
  Batch batch = a.open.fetch_add(1, std::memory_order_seq_cst);
  a.bytes.store(0, std::memory_order_relaxed);
  Closed closed{batch, {}, {}};
  for (Stream s : a.streams) record(a, closed, s);
  a.closed.push_back(std::move(closed));
}

// Somebody wants what is in the open batch: batches are too large for how much memory there is.
void Fences::close_early(Account& a) {
  if (capturing(a)) throw CaptureUnderWay(number(a));
  close_locked(a);
  counters_.closed_early.fetch_add(1, std::memory_order_relaxed);
  a.closed_in_time = 0;
  a.batch_bytes.store(std::max(a.batch_bytes.load(std::memory_order_relaxed) / 2, least_batch_),
                      std::memory_order_relaxed);
}

void Fences::close(uint32_t account) {
  if (!asynchronous_) return;
  Account& a = of_[account];
  std::lock_guard lock(a.mutex);
  if (a.bytes.load(std::memory_order_relaxed) == 0 || capturing(a)) return;
  close_locked(a);
  if (++a.closed_in_time < kGrowAfter) return;
  a.closed_in_time = 0;
  a.batch_bytes.store(std::min(a.batch_bytes.load(std::memory_order_relaxed) * 2, kMostBatch),
                      std::memory_order_relaxed);
}

bool Fences::settles(uint32_t account, Batch batch) {
  if (!asynchronous_) return true;
  Account& a = of_[account];
  std::lock_guard lock(a.mutex);
  if (!closed(account, batch)) {
    if (capturing(a)) return false;
    close_locked(a);
  }
  Closed* found = oldest_from(a, batch);
  return !found || complete(a, *found);
}

void Fences::poll_locked(Account& a) {
  std::erase_if(a.removed, [&](const auto& e) {
    bool gone = device_->passed(e.second);
    if (gone) device_->forget_event(e.second);
    return gone;
  });
  if (!a.removed.empty()) return;
  while (!a.closed.empty()) {
    Closed& oldest = a.closed.front();
    if (!complete(a, oldest)) return;
    if (!std::ranges::all_of(oldest.events,
                             [&](const auto& e) { return device_->passed(e.second); }))
      return;
    for (auto& [stream, event] : oldest.events) device_->forget_event(event);
    a.passed.store(oldest.batch, std::memory_order_release);
    a.closed.pop_front();
  }
}

void Fences::poll(uint32_t account) {
  if (!asynchronous_) return;
  Account& a = of_[account];
  std::lock_guard lock(a.mutex);
  poll_locked(a);
}

void Fences::poll_all() {
  if (!asynchronous_) return;
  for (uint32_t id = 0; id < of_.size(); ++id) poll(id);
}

// Null if the batch has passed. A later batch comes after it on every stream, so the oldest one
// that is not before it will do.
Fences::Closed* Fences::oldest_from(Account& a, Batch batch) {
  auto it = std::ranges::find_if(a.closed, [&](const Closed& c) { return c.batch >= batch; });
  return it == a.closed.end() ? nullptr : &*it;
}

// The same of a batch that somebody wants to wait for: an open one is closed.
const Fences::Closed* Fences::find(Account& a, Batch batch) {
  if (a.open.load(std::memory_order_relaxed) <= batch) close_early(a);
  poll_locked(a);
  Closed* found = oldest_from(a, batch);
  if (found && !complete(a, *found)) throw CaptureUnderWay(number(a));
  return found;
}

uint64_t Fences::wait(Stream waiter, uint32_t account, Batch batch, uint32_t by) {
  Account& a = of_[account];
  std::lock_guard lock(a.mutex);
  const Closed* closed = find(a, batch);
  if (!closed) return 0;
  auto known = std::ranges::find(a.waited, waiter, &std::pair<Stream, Batch>::first);
  if (known != a.waited.end() && known->second >= batch) return 0;
  uint64_t waits = 0;
  auto wait_for = [&](const std::pair<Stream, Event>& e) {
    if (e.first == waiter || device_->passed(e.second)) return;
    // The legacy stream may not be used while anybody captures a blocking one.
    if (!waits && device_->capturing(waiter)) throw CaptureUnderWay(waiter ? by : GS_SHARED);
    device_->make_wait(waiter, e.second);
    ++waits;
    counters_.device_waits.fetch_add(1, std::memory_order_relaxed);
  };
  std::ranges::for_each(a.removed, wait_for);
  std::ranges::for_each(closed->events, wait_for);
  if (known == a.waited.end())
    a.waited.emplace_back(waiter, closed->batch);
  else
    known->second = closed->batch;
  return waits;
}

bool Fences::finish(uint32_t account, Batch batch) {
  Account& a = of_[account];
  std::unique_lock lock(a.mutex);
  const Closed* closed = find(a, batch);
  if (!closed) return false;
  counters_.cpu_waits.fetch_add(1, std::memory_order_relaxed);
  std::vector<std::pair<Stream, Event>> events = closed->events;
  events.insert(events.end(), a.removed.begin(), a.removed.end());
  // Others free and poll meanwhile. An event that they use again lets this wait be longer; in a
  // capture it says that it is one of those, since it was none when it was found.
  lock.unlock();
  for (auto& [stream, event] : events) try {
      device_->finish(event);
    } catch (const DeviceFailure&) {
      if (!device_->spoilt(event)) throw;
    }
  lock.lock();
  poll_locked(a);
  return true;
}

}  // namespace gpushare
