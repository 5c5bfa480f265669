// Eight jobs in eight threads through the C API: blocks of all sizes, freed by other threads too,
// claims that are exceeded, leases of several sizes and none, forks with the others parked and in
// the middle of everything. Whoever reads a byte that it did not write ends the test, and so does a
// pool that a walk finds broken. GPUSHARE_STRESS_S says for how many seconds; 3 without it.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <random>
#include <stdexcept>
#include <thread>
#include <vector>

#include "../include/gpushare.h"
#include "../src/clock.h"
#include "../src/runtime.h"
#include "check.h"

namespace at::sequence_number {
uint64_t get_and_increment();  // the shim's; see interpose.cpp
}

namespace {

constexpr int kJobs = 8;
constexpr uint64_t kMiB = 1 << 20, kBudget = 96 * kMiB, kPeak = 16 * kMiB;

std::atomic<bool> ending{false};
std::atomic<uint64_t> iterations{0}, forks{0}, refusals{0}, freed_by_others{0};

// Blocks that wait for any thread to free them.
struct Mailbox {
  std::mutex mutex;
  std::vector<void*> blocks;
  void post(void* p) {
    std::lock_guard lock(mutex);
    blocks.push_back(p);
  }
  void clear() {
    std::vector<void*> mine;
    {
      std::lock_guard lock(mutex);
      mine.swap(blocks);
    }
    for (void* p : mine) gs_free(p, -1, 0);
    freed_by_others += mine.size();
  }
} mailbox;

struct Block {
  char* address;
  uint64_t bytes;
  uint64_t mark;
  void write() {
    memcpy(address, &mark, sizeof mark);
    memcpy(address + bytes - sizeof mark, &mark, sizeof mark);
  }
  void read() const {
    CHECK(memcmp(address, &mark, sizeof mark) == 0);
    CHECK(memcmp(address + bytes - sizeof mark, &mark, sizeof mark) == 0);
  }
};

class Worker {
 public:
  explicit Worker(int seed) : job_(gs_job_begin(0, 1)), random_(static_cast<unsigned>(seed)) {
    CHECK(job_ > 0);
  }
  void run() {
    gs_thread_enter(job_, nullptr);
    take(512 << 10);  // is there to the end
    while (!ending) {
      gs_iteration_mark(job_);
      try {
        iterate();
      } catch (const std::exception&) {
        ++refusals;
      }
      while (blocks_.size() > 1) drop(random_());
      mailbox.clear();
      if (random_() % 64 == 0) fork_a_child(random_() % 2);
      ++iterations;
    }
    blocks_[0].read();
    gs_free(blocks_[0].address, -1, 0);
    gs_thread_leave();
    gs_job_end(job_);
  }

 private:
  // Up to the peak, now and then beyond it, with some frees on the way.
  void iterate() {
    uint64_t peak = kPeak + (random_() % 16 == 0 ? random_() % (2 * kMiB) : 0);
    std::mt19937_64 same(static_cast<unsigned>(job_));  // much the same in every iteration
    while (live_ < peak) {
      take(16 + same() % (uint64_t{1} << (5 + same() % 18)));
      if (same() % 3 == 0) drop(same());
    }
  }
  void take(uint64_t bytes) {
    auto* p = static_cast<char*>(gs_alloc(bytes, -1, job_, 0, 0));
    blocks_.push_back({p, bytes, random_()});
    blocks_.back().write();
    live_ += bytes;
  }
  void drop(uint64_t which) {
    if (blocks_.size() < 2) return;
    std::swap(blocks_[1 + which % (blocks_.size() - 1)], blocks_.back());
    Block b = blocks_.back();
    blocks_.pop_back();
    b.read();
    live_ -= b.bytes;
    if (random_() % 8 == 0)
      mailbox.post(b.address);
    else
      gs_free(b.address, -1, 0);
  }
  // The child has a copy of all that its parent had, and lives outside the pool.
  void fork_a_child(bool park) {
    if (park) gs_park_others(job_, 100000000);
    pid_t child = fork();
    if (child == 0) {
      for (Block& b : blocks_) b.read();
      void* p = gs_alloc(100000, -1, job_, 0, 0);
      bool outside = gs_owner(p) == -1;
      memset(p, 1, 100000);
      gs_free(p, -1, 0);
      for (Block& b : blocks_) gs_free(b.address, -1, 0);
      for (Block& b : blocks_) b.read();
      _exit(outside ? 0 : 1);
    }
    CHECK(child > 0);
    if (park) gs_unpark_others(job_);
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    ++forks;
  }

  gs_account job_;
  std::mt19937_64 random_;
  std::vector<Block> blocks_;
  uint64_t live_ = 0;
};

// Another thread may have had a lock in hand when a child was made, which nobody opens there: what
// torch tells of a child's graph is not told to the job.
void a_child_tells_nothing_of_its_graph() {
  gs_account job = gs_job_begin(0, 0);
  CHECK(job > 0);
  gs_thread_enter(job, nullptr);
  auto marks = [job] {
    try {
      at::sequence_number::get_and_increment();
      CHECK(false);
    } catch (const std::runtime_error&) {  // there is no torch here
    }
    return !gpushare::runtime()->governor().account(static_cast<uint32_t>(job)).setting_up;
  };
  pid_t child = fork();
  if (child == 0) _exit(marks() ? 1 : 0);
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child && status == 0);
  CHECK(marks());
  gs_thread_leave();
  gs_job_end(job);
}

}  // namespace

int main() {
  const char* seconds = getenv("GPUSHARE_STRESS_S");
  gs_config config = {kBudget, 64 << 10, 2 * kMiB, 0, GS_ZICO, -1, 0, -1, 0, GS_HOST, 0, nullptr};
  CHECK(gs_start(&config) == 0);
  std::vector<Worker> workers;
  for (int n = 0; n < kJobs; ++n) workers.emplace_back(n + 1);
  std::vector<std::thread> threads;
  for (Worker& w : workers) threads.emplace_back([&w] { w.run(); });
  uint64_t end = gpushare::now_ns() + strtoull(seconds ? seconds : "3", nullptr, 10) * 1000000000;
  uint64_t pool[GS_POOL_FIGURES], walks = 0;
  auto too_little = [] { return iterations <= kJobs || forks == 0 || freed_by_others == 0; };
  for (; gpushare::now_ns() < end || too_little(); ++walks) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    if (gs_check() != 0) fprintf(stderr, "%s\n", gs_last_error()), abort();
    CHECK(gs_pool_get(pool) == 0 && pool[0] <= pool[3]);
    constexpr uint64_t kSplits[] = {0, UINT64_MAX, 3 * kMiB};
    if (walks % 20 == 0) gs_split_set(kSplits[walks / 20 % 3]);
    if (walks % 50 == 0) gs_budget_set(kBudget - walks % 3 * 8 * kMiB);  // or refused
  }
  ending = true;
  for (int job = 1; job <= kJobs; ++job) gs_cancel(job);
  for (auto& t : threads) t.join();
  mailbox.clear();
  for (int job = 1; job <= kJobs; ++job) gs_trim(job);
  a_child_tells_nothing_of_its_graph();
  CHECK(gs_check() == 0);
  CHECK(gs_pool_get(pool) == 0 && pool[0] == 0);
  printf("stress: %llu iterations, %llu forks, %llu freed by others, %llu refusals, %llu walks\n",
         static_cast<unsigned long long>(iterations), static_cast<unsigned long long>(forks),
         static_cast<unsigned long long>(freed_by_others),
         static_cast<unsigned long long>(refusals), static_cast<unsigned long long>(walks));
  fflush(stdout);
  CHECK(iterations > kJobs && forks > 0 && freed_by_others > 0);
  _exit(0);  // the sampler runs on, as in the product
}
