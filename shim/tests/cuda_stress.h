// A job of the stress on the CUDA device, over any driver: two threads allocate on one stream, use
// a second one, and free each other's blocks. What a block gets is written and read by kernels, so
// a read that finds another owner's bytes is seen on the device.
#pragma once

#include <atomic>
#include <cstring>
#include <deque>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include "../src/clock.h"
#include "../src/devices/cuda.h"
#include "../src/runtime.h"
#include "check.h"
#include "cuda_kernels.h"

namespace gpushare::stress {

using namespace cuda;

struct Sizes {
  uint64_t page, region, budget, peak;
  unsigned largest;  // a block has at most 8 << largest bytes
  // Bounded: the CPU is that many iterations ahead at most, kernels begin late, and bytes are also
  // set and copied by the driver. 0: none of it.
  size_t ahead = 0;
};

struct Counts {
  std::atomic<bool> ending{false};
  std::atomic<uint64_t> iterations{0}, refusals{0}, copies{0}, next_tag{1};
};

struct Block {
  char* address;
  uint64_t bytes, tag;
};

inline Stream handle(CUstream s) { return reinterpret_cast<Stream>(s); }
inline CUdeviceptr at(const Block& b) { return reinterpret_cast<CUdeviceptr>(b.address); }

// What all jobs of a run have in common.
struct World {
  const Driver& driver;
  Kernels& kernels;
  Runtime& runtime;
  const Sizes& sizes;
  Counts& counts;
};

// The start of a block, copied to the host behind what was written.
struct Copy {
  char* host;
  uint64_t bytes, tag;
};

class Job {
 public:
  // Ends by itself after that time; 0: with the stress.
  Job(const World& world, unsigned seed, uint64_t life_ns = 0)
      : w_(world), random_(seed), life_ns_(life_ns) {
    int account = w_.runtime.governor().begin_job(1);
    CHECK(account > 0);
    account_ = static_cast<uint32_t>(account);
    for (CUstream* s : {&own_, &side_})
      w_.driver.check(w_.driver.cuStreamCreate(s, CU_STREAM_DEFAULT), "cuStreamCreate");
    for (CUstream s : {own_, side_}) w_.runtime.begin_stream(account_, handle(s));
  }
  void start() {
    assistant_ = std::thread([this] { assist(); });
    main_ = std::thread([this] {
      iterate();
      assistant_.join();
      clear_mail();
      w_.runtime.end_job(account_);  // others may wait for what it holds
    });
  }
  // What it has issued may still be under way.
  void join() { main_.join(); }
  void destroy_streams() {
    for (CUstream s : {own_, side_})
      w_.driver.check(w_.driver.cuStreamDestroy_v2(s), "cuStreamDestroy");
  }

 private:
  static constexpr uint64_t kCopied = 4096;

  Block take(std::mt19937_64& random) {
    uint64_t most = uint64_t{1} << (3 + random() % (w_.sizes.largest - 2));
    uint64_t bytes = 8 * (1 + random() % most);
    void* p = w_.runtime.allocate(bytes, account_, handle(own_), false);
    Block b{static_cast<char*>(p), bytes, uint64_t{account_} << 48 | ++w_.counts.next_tag};
    if (w_.sizes.ahead && b.tag % 8 == 0) {
      auto value = static_cast<unsigned char>(account_ << 4 | (b.tag >> 3) % 16);
      b.tag = value * 0x0101010101010101u;
      w_.driver.check(w_.driver.cuMemsetD8Async(at(b), value, bytes, own_), "cuMemsetD8Async");
    } else {
      w_.kernels.write(own_, at(b), bytes, b.tag, delay(random));
    }
    return b;
  }
  // Now and then long enough for another job to come before it.
  uint64_t delay(std::mt19937_64& random) {
    return w_.sizes.ahead && random() % 8 == 0 ? random() % 300'000 : 0;
  }
  void drop(const Block& b, bool by_others) {
    w_.kernels.read(own_, at(b), b.bytes, b.tag, b.tag % 5 == 0 && w_.sizes.ahead ? 100'000 : 0);
    if (by_others) {
      std::lock_guard lock(mutex_);
      mail_.push_back(b);
    } else {
      CHECK(w_.runtime.release(b.address));
    }
  }
  void clear_mail() {
    std::vector<Block> mine;
    {
      std::lock_guard lock(mutex_);
      mine.swap(mail_);
    }
    for (const Block& b : mine) CHECK(w_.runtime.release(b.address));
  }
  // On the second stream too, behind what the first has written.
  void read_on_side(const Block& b, uint64_t delay_ns) {
    CUevent event = recorded(own_);
    w_.driver.check(w_.driver.cuStreamWaitEvent(side_, event, 0), "cuStreamWaitEvent");
    w_.driver.check(w_.driver.cuEventDestroy_v2(event), "cuEventDestroy");
    for (size_t n = 0; n < 1 + 4 * w_.sizes.ahead; ++n)  // so that it is behind
      w_.kernels.read(side_, at(b), b.bytes, b.tag, delay_ns);
    if (w_.sizes.ahead) copy_on_side(b);
    CHECK(w_.runtime.note_use(b.address, handle(side_)));
  }
  void copy_on_side(const Block& b) {
    if (unused_.empty()) unused_.push_back(static_cast<char*>(w_.kernels.host_memory(kCopied)));
    Copy copy{unused_.back(), std::min(b.bytes, kCopied), b.tag};
    unused_.pop_back();
    copies_.push_back(copy);
    w_.driver.check(w_.driver.cuMemcpyDtoHAsync_v2(copy.host, at(b), copy.bytes, side_),
                    "cuMemcpyDtoHAsync");
  }
  CUevent recorded(CUstream stream) {
    CUevent event;
    w_.driver.check(w_.driver.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING), "cuEventCreate");
    w_.driver.check(w_.driver.cuEventRecord(event, stream), "cuEventRecord");
    return event;
  }
  void enter() {
    CUcontext context;
    w_.driver.check(w_.driver.cuDevicePrimaryCtxRetain(&context, 0), "cuDevicePrimaryCtxRetain");
    w_.driver.check(w_.driver.cuCtxSetCurrent(context), "cuCtxSetCurrent");
    w_.runtime.governor().thread_enters(account_);
  }
  void iterate() {
    enter();
    uint64_t begin = now_ns();
    while (!w_.counts.ending && (!life_ns_ || now_ns() < begin + life_ns_)) {
      w_.runtime.governor().mark(account_);
      try {
        one_iteration();
      } catch (const std::exception&) {
        ++w_.counts.refusals;
      }
      for (const Block& b : blocks_) drop(b, false);
      blocks_.clear();
      ++w_.counts.iterations;
      if (w_.sizes.ahead) end_of_iteration(w_.sizes.ahead);
    }
    finished_ = true;
    if (w_.sizes.ahead && !copies_.empty()) end_of_iteration(0);
    while (!under_way_.empty()) wait_for_oldest();
    w_.runtime.governor().thread_leaves(account_);
  }
  void one_iteration() {
    std::mt19937_64 same(account_);  // much the same in every iteration
    uint64_t peak = w_.sizes.peak + (random_() % 64 == 0 ? 32 * w_.sizes.page : 0);
    for (uint64_t live = 0; live < peak;) {
      blocks_.push_back(take(same));
      live += blocks_.back().bytes;
      if (same() % 8 == 0) {
        read_on_side(blocks_.back(), delay(random_));
        if (w_.sizes.ahead && same() % 2) {  // given back while the second stream is at it
          CHECK(w_.runtime.release(blocks_.back().address));
          live -= blocks_.back().bytes;
          blocks_.pop_back();
          continue;
        }
      }
      if (same() % 3) continue;
      std::swap(blocks_[same() % blocks_.size()], blocks_.back());
      live -= blocks_.back().bytes;
      drop(blocks_.back(), random_() % 4 == 0);
      blocks_.pop_back();
    }
  }
  void end_of_iteration(size_t ahead) {
    under_way_.push_back({{recorded(own_), recorded(side_)}, std::move(copies_)});
    copies_.clear();
    while (under_way_.size() > ahead) wait_for_oldest();
  }
  void wait_for_oldest() {
    for (CUevent event : under_way_.front().ends) {
      w_.driver.check(w_.driver.cuEventSynchronize(event), "cuEventSynchronize");
      w_.driver.check(w_.driver.cuEventDestroy_v2(event), "cuEventDestroy");
    }
    for (const Copy& copy : under_way_.front().copies) look_at(copy);
    under_way_.pop_front();
  }
  void look_at(const Copy& copy) {
    for (uint64_t i = 0; i < copy.bytes; i += 8) {
      uint64_t found;
      memcpy(&found, copy.host + i, sizeof found);
      if (found == copy.tag) continue;
      fprintf(stderr, "a copy has %llx instead of %llx\n", static_cast<unsigned long long>(found),
              static_cast<unsigned long long>(copy.tag));
      abort();
    }
    ++w_.counts.copies;
    unused_.push_back(copy.host);
  }
  // A second thread on the job's stream.
  void assist() {
    std::mt19937_64 random(account_ + 100);
    enter();
    while (!w_.counts.ending && !finished_) {
      clear_mail();
      try {
        Block b = take(random);
        std::this_thread::yield();
        drop(b, false);
      } catch (const std::exception&) {
        ++w_.counts.refusals;
      }
    }
    w_.runtime.governor().thread_leaves(account_);
  }

  // Of an iteration whose work may not have ended.
  struct UnderWay {
    CUevent ends[2];
    std::vector<Copy> copies;
  };

  const World w_;
  std::mt19937_64 random_;
  const uint64_t life_ns_;
  uint32_t account_ = 0;
  CUstream own_ = nullptr, side_ = nullptr;
  std::vector<Block> blocks_;
  std::vector<Copy> copies_;
  std::deque<UnderWay> under_way_;
  std::vector<char*> unused_;
  std::atomic<bool> finished_{false};
  std::thread main_, assistant_;
  std::mutex mutex_;
  std::vector<Block> mail_;
};

// Whoever has a permit for whoever: the budget alone is what they wait for.
inline void permit_all(Runtime& runtime, uint32_t jobs) {
  std::vector<PairPermit> permits;
  for (uint32_t a = 1; a <= jobs; ++a)
    for (uint32_t b = 1; b <= jobs; ++b) permits.push_back({a, b, {true, 0, 0}});
  runtime.governor().set_permits(permits);
}

}  // namespace gpushare::stress
