// What outlives its job, and is freed after it: every page comes back.
#include <chrono>
#include <thread>
#include <vector>

#include "../include/gpushare.h"
#include "check.h"

namespace {

constexpr uint64_t kMiB = 1 << 20;

uint64_t held_by(gs_account job) {
  gs_memory memory{};
  gs_memory_get(job, &memory);
  return memory.held_bytes;
}

}  // namespace

int main() {
  gs_config c{};
  c.page_bytes = 2 * kMiB, c.region_bytes = 64 * kMiB, c.budget_bytes = 1024 * kMiB;
  c.telemetry_fd = c.log_fd = -1;
  c.policy = GS_ZICO, c.device_kind = GS_HOST;
  CHECK(gs_start(&c) == 0);
  for (int round = 0; round < 3; ++round) {
    gs_account job = gs_job_begin(0, 1);
    std::vector<void*> kept;
    std::thread([&] {
      gs_thread_enter(job, nullptr);
      for (uint64_t bytes : {100, 400, 1200, 4000, 12000, 32000})
        for (int i = 0; i < 8; ++i) kept.push_back(gs_alloc(bytes, -1, job, 0, 0));
      for (int i = 0; i < 4; ++i) kept.push_back(gs_alloc(5 * kMiB, -1, job, 0, 0));
      gs_thread_leave();
    }).join();
    gs_job_end(job);
    CHECK(held_by(job) > 0);
    for (void* block : kept) gs_free(block, -1, 0);
    // The sampler sees to it.
    for (int i = 0; i < 3000 && held_by(job); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    CHECK(held_by(job) == 0);
  }
  puts("left over: ok");
}
