// Median time of an allocation plus a free that the heap serves, and of glibc's posix_memalign/free
// with the same sizes. Prints one line per size; run by scripts/bench/allocation.py.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "../include/gpushare.h"
#include "../src/clock.h"

namespace {

constexpr int kBatch = 1000, kBatches = 501;

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

}  // namespace

int main() {
  gs_config config = {uint64_t{1} << 30, 2 << 20, 32 << 20, 0, GS_ZICO, -1, 0, -1};
  if (gs_start(&config) != 0) return 1;
  gs_account job = gs_job_begin(0, 0);
  gs_thread_enter(job, nullptr);
  void* keep = gs_alloc(100000, -1, job, 0, 0);  // a job has something: its pages are there
  for (uint64_t bytes : {64u, 1024u, 16384u, 65536u, 262144u, 1048576u, 4194304u}) {
    double ours = median_ns([&] { gs_free(gs_alloc(bytes, -1, job, 0, 0), -1, 0); });
    double glibc = median_ns([&] {
      void* p = nullptr;
      if (posix_memalign(&p, 64, bytes) != 0) abort();
      asm volatile("" : : "r"(p) : "memory");
      free(p);
    });
    printf("%llu %.1f %.1f\n", static_cast<unsigned long long>(bytes), ours, glibc);
  }
  gs_free(keep, -1, 0);
  return 0;
}
