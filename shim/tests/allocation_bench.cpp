// Median times of an allocation plus a free. Run by scripts/bench/allocation.py. One part per run:
//
//   heap       blocks that the heap serves, and glibc's posix_memalign/free of the same sizes
//   threads N  the same in N threads of N jobs at once
//   extents N  an extent taken from the pool and returned, with N others live
//   count B N  N pairs of B bytes and nothing else, for counting instructions
//
// Prints one line per size: bytes, nanoseconds, and for `heap` those of glibc.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "../include/gpushare.h"
#include "../src/clock.h"

namespace {

constexpr int kBatch = 1000, kBatches = 501;
constexpr uint64_t kSizes[] = {64, 1024, 16384, 65536, 262144, 1048576, 4194304};

template <typename Pair>
double median_ns(Pair pair) {
  std::vector<double> times;
  for (int b = 0; b < kBatches; ++b) {
    uint64_t start = gpushare::now_ns();
    for (int i = 0; i < kBatch; ++i) pair();
    times.push_back(static_cast<double>(gpushare::now_ns() - start) / kBatch);
  }
  std::nth_element(times.begin(), times.begin() + kBatches / 2, times.end());
  return times[kBatches / 2];
}

double pair_ns(gs_account job, uint64_t bytes) {
  return median_ns([=] { gs_free(gs_alloc(bytes, -1, job, 0, 0), -1, 0); });
}

double glibc_ns(uint64_t bytes) {
  return median_ns([=] {
    void* p = nullptr;
    if (posix_memalign(&p, 64, bytes) != 0) abort();
    asm volatile("" : : "r"(p) : "memory");
    free(p);
  });
}

void start(uint64_t budget, uint64_t page, uint64_t region, uint64_t addresses = 0) {
  gs_config config = {budget, page, region,  addresses, GS_UNMANAGED, -1, 0,
                      -1,     0,    GS_HOST, 0,         nullptr};
  if (gs_start(&config) == 0) return;
  fprintf(stderr, "%s\n", gs_last_error());
  exit(1);
}

// A job that has something: its pages are there.
gs_account begin() {
  gs_account job = gs_job_begin(0, 0);
  gs_thread_enter(job, nullptr);
  gs_alloc(100000, -1, job, 0, 0);
  return job;
}

void heap() {
  start(uint64_t{1} << 30, 2 << 20, 32 << 20);
  gs_account job = begin();
  for (uint64_t bytes : kSizes)
    printf("%llu %.1f %.1f\n", static_cast<unsigned long long>(bytes), pair_ns(job, bytes),
           glibc_ns(bytes));
}

// A batch is shorter than a turn on a processor, so the median is of batches that ran through.
void threads(int count) {
  start(uint64_t{1} << 30, 2 << 20, 32 << 20);
  for (uint64_t bytes : kSizes) {
    std::vector<double> found(static_cast<size_t>(count));
    std::atomic<int> ready{0};
    std::vector<std::thread> all;
    for (double& ns : found)
      all.emplace_back([&ns, &ready, bytes, count] {
        gs_account job = begin();
        for (++ready; ready < count;) std::this_thread::yield();
        ns = pair_ns(job, bytes);
        gs_thread_leave();
        gs_job_end(job);
      });
    for (auto& t : all) t.join();
    std::nth_element(found.begin(), found.begin() + count / 2, found.end());
    printf("%llu %.1f\n", static_cast<unsigned long long>(bytes),
           found[static_cast<size_t>(count) / 2]);
  }
}

// Small pages, so that many extents fit. Each second one is freed again: the pool has as many
// holes.
void extents(uint64_t live) {
  constexpr uint64_t kBytes = 32 << 10, kPage = 4096;
  uint64_t budget = (2 * live + 1000) * (kBytes + kPage);
  start(budget, kPage, 64 << 10, budget + budget / 4);
  gs_account job = begin();
  std::vector<void*> all;
  for (uint64_t i = 0; i < 2 * live; ++i) all.push_back(gs_alloc(kBytes + 1, -1, job, 0, 0));
  for (uint64_t i = 0; i < all.size(); i += 2) gs_free(all[i], -1, 0);
  printf("%llu %.1f\n", static_cast<unsigned long long>(kBytes + 1), pair_ns(job, kBytes + 1));
}

void count(uint64_t bytes, int pairs) {
  start(uint64_t{1} << 30, 2 << 20, 64 << 20);  // regions as `run` has them
  gs_account job = begin();
  while (pairs-- > 0) gs_free(gs_alloc(bytes, -1, job, 0, 0), -1, 0);
}

}  // namespace

int main(int argc, char** argv) {
  const char* part = argc > 1 ? argv[1] : "heap";
  int n = argc > 2 ? atoi(argv[2]) : 0;
  if (strcmp(part, "heap") == 0)
    heap();
  else if (strcmp(part, "threads") == 0 && n > 0)
    threads(n);
  else if (strcmp(part, "extents") == 0 && n > 0)
    extents(static_cast<uint64_t>(n));
  else if (strcmp(part, "count") == 0 && n > 0 && argc > 3)
    count(static_cast<uint64_t>(n), atoi(argv[3]));
  else
    return fprintf(stderr, "allocation_bench heap | threads N | extents N | count BYTES N\n"), 2;
}
