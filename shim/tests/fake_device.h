// An asynchronous device: what is issued on a stream happens later, in any order that streams and
// events allow. It finds every missing wait: a read that sees another's bytes is counted.
#pragma once

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <random>
#include <vector>

#include "../src/device.h"

namespace gpushare {

class FakeDevice final : public Device {
 public:
  explicit FakeDevice(uint64_t seed) : random_(seed) {}

  char* reserve(size_t bytes, size_t page_bytes) override {
    page_bytes_ = page_bytes;
    raw_ = std::make_unique<char[]>(bytes + page_bytes);
    auto a = (reinterpret_cast<uintptr_t>(raw_.get()) + page_bytes - 1) & ~(page_bytes - 1);
    return reinterpret_cast<char*>(a);
  }
  void unmap(char* address) override { memset(address, 0, page_bytes_); }
  bool asynchronous() const override { return true; }
  Event record(Stream s) override {
    events_.push_back({s, streams_[s].issued});
    return events_.size();
  }
  bool passed(Event e) override {
    auto [stream, position] = events_[e - 1];
    return streams_[stream].done >= position;
  }
  void finish(Event e) override {
    while (!passed(e)) run(1);
  }
  void make_wait(Stream waiter, Event e) override { issue(waiter, {Op::kWait, nullptr, 0, 0, e}); }

  void write(Stream s, char* address, size_t bytes, char value) {
    issue(s, {Op::kWrite, address, bytes, value, 0});
  }
  void read(Stream s, char* address, size_t bytes, char value) {
    issue(s, {Op::kRead, address, bytes, value, 0});
  }
  // Runs up to n operations, each of a stream picked at random among those that can go on.
  void run(size_t n) {
    while (n-- > 0) {
      std::vector<Queue*> ready;
      for (auto& [id, q] : streams_)
        if (!q.ops.empty() && can_run(q.ops.front())) ready.push_back(&q);
      if (ready.empty()) return;
      step(*ready[random_() % ready.size()]);
    }
  }
  void run_all() { run(SIZE_MAX); }
  bool idle() const {
    for (auto& [id, q] : streams_)
      if (!q.ops.empty()) return false;
    return true;
  }
  uint64_t wrong_reads() const { return wrong_reads_; }

 private:
  struct Op {
    enum Kind { kWrite, kRead, kWait } kind;
    char* address;
    size_t bytes;
    char value;
    Event event;
  };
  struct Queue {
    std::deque<Op> ops;
    uint64_t issued = 0, done = 0;
  };
  void issue(Stream s, Op op) {
    Queue& q = streams_[s];
    q.ops.push_back(op);
    ++q.issued;
  }
  bool can_run(const Op& op) { return op.kind != Op::kWait || passed(op.event); }
  void step(Queue& q) {
    Op op = q.ops.front();
    q.ops.pop_front();
    ++q.done;
    if (op.kind == Op::kWrite) memset(op.address, op.value, op.bytes);
    if (op.kind == Op::kRead)
      wrong_reads_ +=
          std::any_of(op.address, op.address + op.bytes, [&](char c) { return c != op.value; });
  }

  std::unique_ptr<char[]> raw_;
  size_t page_bytes_ = 0;
  std::vector<std::pair<Stream, uint64_t>> events_;
  std::map<Stream, Queue> streams_;
  std::mt19937_64 random_;
  uint64_t wrong_reads_ = 0;
};

}  // namespace gpushare
