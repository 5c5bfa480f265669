// A random program of several jobs and streams on the CUDA device, over the fake driver, in one
// thread: it takes blocks, writes and reads them on streams that run late, and gives them back.
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "../src/devices/cuda.h"
#include "../src/runtime.h"
#include "check.h"
#include "fake_cuda/fake_cuda.h"

using namespace gpushare;
using namespace gpushare::cuda;

namespace random_program {

constexpr uint64_t kPage = 64 << 10, kRegion = 16 * kPage, kSmallRegion = 8 * kPage;

struct Sums {
  uint64_t waits = 0, mapped = 0, changed_owner = 0, early = 0, refused = 0, taken = 0, foreign = 0;
  uint64_t cpu_waits = 0, destroyed = 0, failures = 0, captured = 0;
  uint64_t device_time = 0, ideal_time = 0;
};

struct Block {
  char* address;
  uint64_t bytes, tag;
  size_t job;
  CUstream stream;
  bool freed = false;  // in the capture of a graph
};

// A graph that was captured, with all that it writes when it runs: also what was freed in between.
struct Graph {
  size_t job;
  uint32_t arena;
  std::vector<Block> uses;
};

// While it lives the waits are the allocator's.
struct ForMemory {
  ForMemory() { fake_cuda_waits_for_memory(1); }
  ~ForMemory() { fake_cuda_waits_for_memory(0); }
};

struct TestJob {
  uint32_t account;
  std::vector<CUstream> streams;  // the first is the job's own
  size_t allocating;              // that many of them; on the others it only computes
};

class Program {
 public:
  Program(const Driver& driver, uint64_t seed, Sums& sums)
      : random_(seed),
        scarce_(seed % 4 == 3),
        graphs_too_(seed % 4 == 1),
        announces_(seed % 8 > 2),
        driver_(driver),
        sums_(sums),
        device_(&driver, 0) {
    CHECK(telemetry_.open(-1));
    uint64_t budget = ((scarce_ ? 80 : 24) + random_() % 40) * kPage,
             region = scarce_ ? kSmallRegion : kRegion;
    gs_config config{budget, kPage, region,  scarce_, GS_UNMANAGED, -1, 0,
                     -1,     0,     GS_CUDA, 0,       nullptr};
    runtime_ = std::make_unique<Runtime>(config, &device_, &telemetry_);
    runtime_->governor().fences().longest_capture = {};  // one thread: nobody would end it
    size_t jobs = 1 + random_() % 3, streams = 0;
    for (size_t j = 0; j < jobs; ++j) begin_job(streams);
    if (streams < 2) jobs_[0].streams.push_back(new_stream(jobs_[0].account));
  }

  // Driver calls may. A mapping that failed is taken away once more, in case that had failed
  // before.
  void may_fail() {
    faulty_ = true;
    for (const char* part : {"no whole mappings", "is mapped there"}) fake_cuda_expect_misuse(part);
  }

  void run(int steps) {
    for (int i = 0; i < steps; ++i) {
      step(random_() % 16);
      fake_cuda_run(random_() % (scarce_ ? 2 : 6));
      if (i % 16 == 0) runtime_->tick();
      if (i % 64 == 0) CHECK_EMPTY(runtime_->check());
    }
    if (capturing_) end_capture();
    while (!graphs_.empty()) destroy_graph(0);
    while (!blocks_.empty()) release(blocks_.size() - 1);
    for (const TestJob& j : jobs_) runtime_->end_job(j.account);
    fake_cuda_run_all();
    finish();
  }

 private:
  void step(uint64_t what) {
    if (capturing_ && random_() % 8 == 0) {
      end_capture();
    } else if (what < 6) {
      take();
    } else if (graphs_too_ && what == 14) {
      graph_step();
    } else if (blocks_.empty()) {
      return;
    } else if (what < 10) {
      release(random_() % blocks_.size());
    } else if (what < 11) {
      read(blocks_[random_() % blocks_.size()]);
    } else if (what < 13) {
      use_elsewhere(random_() % blocks_.size());
    } else if (what < 14) {
      runtime_->governor().mark(any_job().account);
    } else if (scarce_ && what == 15) {
      runtime_->governor().set_budget(24 + random_() % 80);
    } else if (random_() % 4 == 0) {
      random_() % 2 ? renew_stream() : renew_job();
    }
  }

  void take() {
    size_t j = random_() % jobs_.size();
    CUstream stream = jobs_[j].streams[random_() % jobs_[j].allocating];
    uint32_t arena = captured(stream) ? graphs_.back().arena : 0;
    uint64_t most = uint64_t{1} << (3 + random_() % (graphs_too_ ? 17 : 16));
    uint64_t bytes = 8 * (1 + random_() % most);
    char* p;
    ForMemory waits;
    try {
      p = static_cast<char*>(
          runtime_->allocate(bytes, jobs_[j].account, handle(stream), false, arena));
    } catch (const OutOfMemory&) {
      ++sums_.refused;
      return;
    } catch (const DeviceFailure& e) {
      bool in_capture = strstr(e.what(), "captures a CUDA graph");  // after another failure
      CHECK(in_capture || (strstr(e.what(), "cu") && strstr(e.what(), "CUDA_ERROR")));
      CHECK(faulty_);
      ++sums_.failures;
      return;
    }
    ++sums_.taken;
    if (arena) return note_in_graph({p, bytes, ++tag_, j, stream});
    blocks_.push_back({p, bytes, ++tag_, j, stream});
    fake_cuda_launch_write(stream, address(blocks_.back()), bytes, tag_);
  }
  // The own stream of a job is captured, as torch.cuda.graph does with a side stream of its own;
  // what the job does elsewhere goes on.
  void graph_step() {
    if (!graphs_.empty() && !capturing_) return use_graph();
    if (capturing_) return;
    size_t j = random_() % jobs_.size();
    for (const Graph& g : graphs_)
      if (g.job == j) return;
    graphs_.push_back({j, ++arenas_, {}});
    capturing_ = true;
    runtime_->begin_capture(jobs_[j].account);
    CUstream captured = jobs_[j].streams[0];
    sure([&] { return driver_.cuStreamBeginCapture_v2(captured, CU_STREAM_CAPTURE_MODE_GLOBAL); },
         "cuStreamBeginCapture");
  }
  void end_capture() {
    CUgraph graph = nullptr;
    CUstream captured = jobs_[graphs_.back().job].streams[0];
    sure([&] { return driver_.cuStreamEndCapture(captured, &graph); }, "cuStreamEndCapture");
    runtime_->end_capture(jobs_[graphs_.back().job].account);
    capturing_ = false;
  }
  // Freed in the capture or not, the graph writes there each time it runs; the later block wins.
  void note_in_graph(const Block& b) {
    std::vector<Block>& uses = graphs_.back().uses;
    uses.push_back(b);
    if (random_() % 2) {
      CHECK(runtime_->release(b.address));
      uses.back().freed = true;
    }
  }
  void use_graph() {
    size_t i = random_() % graphs_.size();
    if (random_() % 4 == 0) return destroy_graph(i);
    for (const Block& b : graphs_[i].uses) {
      CUstream stream = jobs_[b.job].streams[0];
      fake_cuda_launch_write(stream, address(b), b.bytes, b.tag);
      read(b, stream);
    }
  }
  void destroy_graph(size_t i) {
    Graph g = graphs_[i];
    graphs_.erase(graphs_.begin() + static_cast<long>(i));
    runtime_->end_arena(jobs_[g.job].account, g.arena);
    for (const Block& b : g.uses)
      if (!b.freed) CHECK(runtime_->release(b.address));
  }
  // Nothing of the program itself may touch a stream that is captured.
  bool captured(CUstream s) const {
    return capturing_ && s == jobs_[graphs_.back().job].streams[0];
  }
  void read(const Block& b, CUstream stream) {
    fake_cuda_launch_read(stream, address(b), b.bytes, b.tag);
  }
  void read(const Block& b) { read(b, b.stream); }
  void release(size_t i) {
    Block b = blocks_[i];
    read(b);
    blocks_[i] = blocks_.back();
    blocks_.pop_back();
    CHECK(runtime_->release(b.address));
  }
  // As scripts do: the side stream waits, reads, and either the allocator is told of it, or the
  // block is deleted and its own stream waits for the side stream.
  void use_elsewhere(size_t i) {
    Block b = blocks_[i];
    CUstream side = jobs_[b.job].streams[random_() % jobs_[b.job].streams.size()];
    if (side == b.stream || captured(side) || captured(b.stream)) return;
    ++sums_.foreign;
    wait_stream(side, b.stream);
    read(b, side);
    // Of a stream that nobody announced the allocator must be told.
    if (random_() % 2 || !announces_) {
      CHECK(runtime_->note_use(b.address, handle(side)));
      if (random_() % 2) release(i);
    } else {
      release(i);
      wait_stream(b.stream, side);
    }
  }
  void renew_stream() {
    TestJob& job = jobs_[random_() % jobs_.size()];
    if (job.streams.size() < 2 || captured(job.streams[0])) return;
    CUstream old = job.streams.back();
    // Its blocks go on living, and are used on the job's own stream from now on.
    wait_stream(job.streams[0], old);
    for (Block& b : blocks_)
      if (b.stream == old) {
        b.stream = job.streams[0];
        CHECK(runtime_->note_use(b.address, handle(b.stream)));
      }
    runtime_->end_stream(handle(old));
    sure([&] { return driver_.cuStreamDestroy_v2(old); }, "cuStreamDestroy_v2");
    job.streams.back() = new_stream(job.account);
  }
  void renew_job() {
    size_t j = random_() % jobs_.size();
    for (const Graph& g : graphs_)
      if (g.job == j) return;
    for (size_t i = blocks_.size(); i-- > 0;)
      if (blocks_[i].job == j) release(i);
    runtime_->end_job(jobs_[j].account);
    int account = runtime_->governor().begin_job(0);
    if (account < 0) return;
    jobs_[j].account = static_cast<uint32_t>(account);
    for (CUstream s : jobs_[j].streams)
      if (announces_) runtime_->begin_stream(jobs_[j].account, handle(s));
  }

  void begin_job(size_t& streams) {
    TestJob job{static_cast<uint32_t>(runtime_->governor().begin_job(0)), {}, 1};
    size_t n = 1 + random_() % 2;
    job.allocating = 1 + random_() % n;
    for (size_t s = 0; s < n; ++s) job.streams.push_back(new_stream(job.account));
    streams += n;
    jobs_.push_back(job);
  }
  CUstream new_stream(uint32_t account) {
    CUstream made = nullptr;
    sure([&] { return driver_.cuStreamCreate(&made, CU_STREAM_DEFAULT); }, "cuStreamCreate");
    if (announces_) runtime_->begin_stream(account, handle(made));
    return made;
  }
  void wait_stream(CUstream waiter, CUstream stream) {
    CUevent event = nullptr;
    sure([&] { return driver_.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING); }, "cuEventCreate");
    sure([&] { return driver_.cuEventRecord(event, stream); }, "cuEventRecord");
    sure([&] { return driver_.cuStreamWaitEvent(waiter, event, 0); }, "cuStreamWaitEvent");
    sure([&] { return driver_.cuEventDestroy_v2(event); }, "cuEventDestroy_v2");
  }
  // The program's own calls are not what is tried.
  template <typename F>
  void sure(F call, const char* name) {
    if (call() != CUDA_SUCCESS) driver_.check(call(), name);
  }
  const TestJob& any_job() { return jobs_[random_() % jobs_.size()]; }
  static Stream handle(CUstream s) { return reinterpret_cast<Stream>(s); }
  static unsigned long long address(const Block& b) {
    return reinterpret_cast<unsigned long long>(b.address);
  }

  void finish() {
    CHECK_EMPTY(runtime_->check());
    fake_cuda_counters c = fake_cuda_read_counters();
    if (c.wrong_reads) printf("%s\n", fake_cuda_last_wrong_read());
    if (c.misuses) printf("%s\n", fake_cuda_last_misuse());
    CHECK(c.wrong_reads == 0);
    CHECK(c.misuses == 0);
    CHECK(c.pending == 0);
    CHECK(c.capture_errors == 0);
    sums_.captured += arenas_;
    bool may_wait = scarce_ || faulty_ || arenas_;
    CHECK(may_wait || c.stream_waits.calls + c.context_waits.calls + c.event_waits.calls == 0);
    Governor& g = runtime_->governor();
    CHECK(g.pool_state().held == 0);
    const Fences::Counters& f = g.fences().counters();
    CHECK(may_wait || f.cpu_waits == 0);
    sums_.cpu_waits += f.cpu_waits;
    sums_.destroyed += fake_cuda_calls("cuMemRelease");
    sums_.waits += f.device_waits;
    sums_.early += f.closed_early;
    sums_.mapped += g.pool().counters().mapped;
    sums_.changed_owner += g.pool().counters().changed_owner;
    each_account_has_its_share();
    if (may_wait) return;  // the device's clock does not know of the CPU's waits
    sums_.device_time += fake_cuda_device_time();
    sums_.ideal_time += fake_cuda_ideal_time();
  }

  // What is counted for accounts is what happened, and nothing is left when all has been freed.
  void each_account_has_its_share() {
    Governor& g = runtime_->governor();
    uint64_t mappings = 0, waits = 0, events = 0, received = 0;
    for (uint32_t id = 0; id < kAccounts; ++id) {
      Account& a = g.account(id);
      for (const auto& live : a.live_at) CHECK(live == 0);
      CHECK(a.live == 0);
      mappings += a.mappings;
      waits += a.device_waits;
      events += g.fences().events(id);
      received += g.pool().counters().received[id];
    }
    CHECK(received == g.pool().counters().changed_owner);
    CHECK(events == g.fences().counters().events);
    if (faulty_) return;  // what was done before a failure is not counted
    CHECK(waits == g.fences().counters().device_waits);
    CHECK(mappings == g.pool().counters().mapped);
  }

  std::mt19937_64 random_;
  bool scarce_, graphs_too_, announces_, faulty_ = false;
  const Driver& driver_;
  Sums& sums_;
  Telemetry telemetry_;
  CudaDevice device_;
  std::unique_ptr<Runtime> runtime_;
  std::vector<TestJob> jobs_;
  std::vector<Block> blocks_;
  std::vector<Graph> graphs_;  // the last may be under way
  bool capturing_ = false;
  uint32_t arenas_ = 0;
  uint64_t tag_ = 0;
};

}  // namespace random_program
