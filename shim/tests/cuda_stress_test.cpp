// Four jobs of two threads each on the CUDA device, over the fake driver, with a thread that runs
// the device and one that does what the sampler does. The threads of a job allocate on one stream,
// use a second one, and free each other's blocks; claims are exceeded now and then. No read finds
// bytes that another owner wrote, and a walk of pool and heaps finds nothing wrong. Then the same
// with driver calls that fail.
// GPUSHARE_STRESS_S says for how many seconds; 3 without it.
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include "../src/clock.h"
#include "../src/devices/cuda.h"
#include "../src/runtime.h"
#include "check.h"
#include "fake_cuda/fake_cuda.h"

using namespace gpushare;
using namespace gpushare::cuda;

namespace {

constexpr uint64_t kPage = 64 << 10, kRegion = 1 << 20, kMemory = 640 * kPage, kPeak = 160 * kPage;
constexpr int kScripts = 4;

std::atomic<bool> ending{false};
std::atomic<uint64_t> iterations{0}, refusals{0}, next_tag{1};

struct Block {
  char* address;
  uint64_t bytes, tag;
};

class Job {
 public:
  Job(const Driver& driver, Runtime& runtime, unsigned seed)
      : driver_(driver), runtime_(runtime), random_(seed) {
    account_ = static_cast<uint32_t>(runtime.governor().begin_job(1));
    for (CUstream* s : {&own_, &side_})
      driver.check(driver.cuStreamCreate(s, CU_STREAM_DEFAULT), "cuStreamCreate");
    for (CUstream s : {own_, side_}) runtime.begin_stream(account_, reinterpret_cast<Stream>(s));
  }
  void start() {
    assistant_ = std::thread([this] { assist(); });
    main_ = std::thread([this] {
      iterate();
      assistant_.join();
      clear_mail();
      runtime_.end_job(account_);  // others may wait for what it holds
    });
  }
  void join() {
    main_.join();
    for (CUstream s : {own_, side_})
      driver_.check(driver_.cuStreamDestroy_v2(s), "cuStreamDestroy");
  }

 private:
  Block take(std::mt19937_64& random) {
    uint64_t most = uint64_t{1} << (3 + random() % 16), bytes = 8 * (1 + random() % most);
    auto* p = static_cast<char*>(
        runtime_.allocate(bytes, account_, reinterpret_cast<Stream>(own_), false));
    Block b{p, bytes, ++next_tag};
    fake_cuda_launch_write(own_, reinterpret_cast<CUdeviceptr>(p), bytes, b.tag);
    return b;
  }
  void drop(const Block& b, bool by_others) {
    fake_cuda_launch_read(own_, reinterpret_cast<CUdeviceptr>(b.address), b.bytes, b.tag);
    if (by_others) {
      std::lock_guard lock(mutex_);
      mail_.push_back(b);
    } else {
      CHECK(runtime_.release(b.address));
    }
  }
  void clear_mail() {
    std::vector<Block> mine;
    {
      std::lock_guard lock(mutex_);
      mine.swap(mail_);
    }
    for (const Block& b : mine) CHECK(runtime_.release(b.address));
  }
  // On the second stream too, behind what the first has written.
  void read_on_side(const Block& b) {
    CUevent event;
    driver_.check(driver_.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING), "cuEventCreate");
    driver_.check(driver_.cuEventRecord(event, own_), "cuEventRecord");
    driver_.check(driver_.cuStreamWaitEvent(side_, event, 0), "cuStreamWaitEvent");
    driver_.check(driver_.cuEventDestroy_v2(event), "cuEventDestroy");
    fake_cuda_launch_read(side_, reinterpret_cast<CUdeviceptr>(b.address), b.bytes, b.tag);
    CHECK(runtime_.note_use(b.address, reinterpret_cast<Stream>(side_)));
  }
  void iterate() {
    CUcontext context;
    driver_.check(driver_.cuDevicePrimaryCtxRetain(&context, 0), "cuDevicePrimaryCtxRetain");
    driver_.check(driver_.cuCtxSetCurrent(context), "cuCtxSetCurrent");
    runtime_.governor().thread_enters(account_);
    while (!ending) {
      runtime_.governor().mark(account_);
      try {
        one_iteration();
      } catch (const std::exception&) {
        ++refusals;
      }
      for (const Block& b : blocks_) drop(b, false);
      blocks_.clear();
      ++iterations;
    }
    runtime_.governor().thread_leaves(account_);
  }
  void one_iteration() {
    std::mt19937_64 same(account_);  // much the same in every iteration
    uint64_t peak = kPeak + (random_() % 64 == 0 ? 32 * kPage : 0);
    for (uint64_t live = 0; live < peak;) {
      blocks_.push_back(take(same));
      live += blocks_.back().bytes;
      if (same() % 8 == 0) read_on_side(blocks_.back());
      if (same() % 3) continue;
      std::swap(blocks_[same() % blocks_.size()], blocks_.back());
      live -= blocks_.back().bytes;
      drop(blocks_.back(), random_() % 4 == 0);
      blocks_.pop_back();
    }
  }
  // A second thread on the job's stream.
  void assist() {
    CUcontext context;
    driver_.check(driver_.cuDevicePrimaryCtxRetain(&context, 0), "cuDevicePrimaryCtxRetain");
    driver_.check(driver_.cuCtxSetCurrent(context), "cuCtxSetCurrent");
    std::mt19937_64 random(account_ + 100);
    runtime_.governor().thread_enters(account_);
    while (!ending) {
      clear_mail();
      try {
        Block b = take(random);
        std::this_thread::yield();
        drop(b, false);
      } catch (const std::exception&) {
        ++refusals;
      }
    }
    runtime_.governor().thread_leaves(account_);
  }

  const Driver& driver_;
  Runtime& runtime_;
  std::mt19937_64 random_;
  uint32_t account_;
  CUstream own_ = nullptr, side_ = nullptr;
  std::vector<Block> blocks_;
  std::thread main_, assistant_;
  std::mutex mutex_;
  std::vector<Block> mail_;
};

// A device as new, and a runtime on it.
struct Machine {
  Telemetry telemetry;
  CudaDevice device;
  Runtime runtime;
  explicit Machine(const Driver& driver)
      : telemetry(opened()), device(&driver, 0), runtime(config(), &device, &telemetry) {}
  static Telemetry opened() {
    fake_cuda_reset(1);
    fake_cuda_set_granularity(kPage);
    Telemetry t;
    CHECK(t.open(-1));
    return t;
  }
  static gs_config config() {
    return {kMemory, kPage, kRegion, 0, GS_ZICO, -1, 0, -1, 0, GS_CUDA, 0, nullptr};
  }
};

void run(const Driver& driver, uint64_t seconds, bool faults) {
  Machine all(driver);
  Runtime& runtime = all.runtime;
  std::vector<std::unique_ptr<Job>> jobs;
  for (unsigned i = 0; i < kScripts; ++i) jobs.push_back(std::make_unique<Job>(driver, runtime, i));
  for (uint32_t a = 1; a <= kScripts; ++a)
    for (uint32_t b = 1; b <= kScripts; ++b) runtime.governor().set_permits({{a, b, {true, 0, 0}}});
  ending = false;
  iterations = refusals = 0;
  std::atomic<bool> done{false};
  std::thread machine([&] {
    while (!done) fake_cuda_run(16);
  });
  uint64_t walks = 0;
  std::thread sampler([&] {
    std::mt19937_64 random(1);
    uint64_t seen = 0;
    const char* calls[] = {"cuMemMap", "cuMemCreate", "cuMemSetAccess"};
    while (!done) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      uint64_t calls_now = fake_cuda_calls("cuMemMap");
      if (faults && calls_now > seen + 20) {  // one at a time
        seen = calls_now;
        fake_cuda_fail(calls[random() % 3], 1 + random() % 3,
                       random() % 2 ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_UNKNOWN);
      }
      runtime.tick();
      CHECK_EMPTY(runtime.check());
      ++walks;
    }
  });
  for (auto& j : jobs) j->start();
  for (uint64_t n = 0; n < seconds || iterations <= kScripts; ++n)  // however slow the machine is
    std::this_thread::sleep_for(std::chrono::seconds(1));
  ending = true;
  for (auto& j : jobs) j->join();
  done = true;
  machine.join();
  sampler.join();
  fake_cuda_run_all();
  fake_cuda_counters c = fake_cuda_read_counters();
  if (c.wrong_reads) printf("%s\n", fake_cuda_last_wrong_read());
  CHECK(c.wrong_reads == 0);
  // A mapping that failed is taken away once more, in case that had failed before.
  bool known = faults && strstr(fake_cuda_last_misuse(), "no whole mappings");
  if (c.misuses && !known) printf("%s\n", fake_cuda_last_misuse());
  CHECK(c.misuses == 0 || known);
  CHECK(runtime.governor().pool_state().held == 0);
  CHECK_EMPTY(runtime.check());
  const Fences::Counters& f = runtime.governor().fences().counters();
  auto n = [](uint64_t value) { return static_cast<unsigned long long>(value); };
  printf("cuda stress%s: %llu iterations, %llu errors, %llu device waits, %llu waits of the CPU, ",
         faults ? " with faults" : "", n(iterations), n(refusals), n(f.device_waits),
         n(f.cpu_waits));
  printf("%llu mappings, %llu walks\n", n(runtime.governor().pool().counters().mapped), n(walks));
}

// Two threads look for blocks that became free, while the job makes, uses and frees the same few.
void two_reclaim(const Driver& driver, uint64_t seconds) {
  Machine all(driver);
  Runtime& runtime = all.runtime;
  auto account = static_cast<uint32_t>(runtime.governor().begin_job(1));
  CUstream own, side;
  for (CUstream* s : {&own, &side}) {
    driver.check(driver.cuStreamCreate(s, CU_STREAM_DEFAULT), "cuStreamCreate");
    runtime.begin_stream(account, reinterpret_cast<Stream>(*s));
  }
  std::atomic<bool> done{false};
  std::vector<std::thread> threads;
  for (int n = 0; n < 2; ++n)
    threads.emplace_back([&] {
      while (!done) reclaim(runtime.governor(), runtime.governor().account(account), false);
    });
  uint64_t blocks = 0, end = now_ns() + seconds * 1000000000;
  while (now_ns() < end) {
    for (int n = 0; n < 200; ++n) {  // many at once, so that both are at it for a while
      void* p = runtime.allocate(512, account, reinterpret_cast<Stream>(own), false);
      CHECK(runtime.note_use(p, reinterpret_cast<Stream>(side)));
      CHECK(runtime.release(p));
      ++blocks;
    }
    runtime.governor().fences().close(account);
    fake_cuda_run_all();
  }
  done = true;
  for (auto& t : threads) t.join();
  runtime.end_job(account);
  CHECK_EMPTY(runtime.check());
  CHECK(fake_cuda_read_counters().misuses == 0);
  printf("two reclaim: %llu blocks\n", static_cast<unsigned long long>(blocks));
}

}  // namespace

int main() {
  setvbuf(stdout, nullptr, _IONBF, 0);
  const char* asked = getenv("GPUSHARE_STRESS_S");
  uint64_t seconds = asked ? strtoull(asked, nullptr, 10) : 3;
  Driver driver(GPUSHARE_FAKE_CUDA);
  two_reclaim(driver, 1);
  run(driver, seconds, false);
  run(driver, seconds, true);
}
