// The C API with a GPU's memory as its pool: what a start needs, which memory comes from where, and
// what a script may ask of its memory.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <thread>
#include <vector>

#include "../include/gpushare.h"
#include "../src/devices/cuda_driver.h"
#include "check.h"
#include "fake_cuda/fake_cuda.h"

namespace {

constexpr uint64_t kMiB = 1 << 20, kPage = 2 * kMiB, kBudget = 64 * kMiB;

gs_stream new_stream() {
  static const gpushare::cuda::Driver driver{GPUSHARE_FAKE_CUDA};
  gpushare::cuda::CUstream stream = nullptr;
  driver.check(driver.cuStreamCreate(&stream, gpushare::cuda::CU_STREAM_DEFAULT), "cuStreamCreate");
  return reinterpret_cast<gs_stream>(stream);
}

gs_config config() {
  return {kBudget, kPage, 16 * kMiB, 0, GS_UNMANAGED, -1, 0, -1, 0, GS_CUDA, 0, GPUSHARE_FAKE_CUDA};
}

void refused(const gs_config& c, const char* word) {
  CHECK(gs_start(&c) == -1);
  if (!strstr(gs_last_error(), word)) fprintf(stderr, "said: %s\n", gs_last_error());
  CHECK(strstr(gs_last_error(), word));
}

void what_cannot_be_is_said() {
  fake_cuda_reset(1);
  gs_config c = config();
  c.driver = "libno_such_driver.so";
  refused(c, "cuda:0 can't be used: the CUDA driver can't be loaded");
  c = config();
  c.device_index = 7;
  refused(c, "cuda:7 can't be used: cuDeviceGet");
  c = config();
  c.page_bytes = kMiB;
  refused(c, "page_bytes must be a multiple of 2097152");
  c = config();
  c.budget_bytes = 2048 * kMiB;
  refused(c, "at most the GPU's memory, 1024 MiB, but got 2048 MiB");
  c = config();
  c.device_kind = 9;
  refused(c, "unknown kind of device");
  CHECK(gs_device() == -1);
}

// cuda.h, CU_STREAM_LEGACY and CU_STREAM_PER_THREAD: handles that are no streams of their own.
void streams_by_special_handles(gs_account job) {
  void* block = gs_try_alloc(kMiB, 0, job, 1, 0);
  gs_free(block, 0, 0);
  CHECK(block && gs_try_alloc(kMiB, 0, job, 0, 0) == block);  // the legacy stream is 0
  CHECK(gs_record_stream(block, 1) == 0);
  CHECK(gs_record_stream(block, 2) == -1 && strstr(gs_last_error(), "per-thread"));
  CHECK(!gs_try_alloc(kMiB, 0, job, 2, 0) && gs_last_failure() == GS_FAILED);
  CHECK(strstr(gs_last_error(), "per-thread default stream"));
  gs_free(block, 0, 0);
  block = gs_try_alloc(kMiB, 0, job, 0, 0);
  CHECK(block);  // at once: it was used on no other stream
  gs_free(block, 0, 0);
}

gs_memory memory_of(gs_account account) {
  gs_memory m;
  CHECK(gs_memory_get(account, &m) == 0);
  return m;
}

void* made(uint64_t bytes, gs_account account) {
  void* p = gs_try_alloc(bytes, 0, account, 0, 0);
  if (!p) fprintf(stderr, "said: %s\n", gs_last_error());
  CHECK(p && gs_owner(p) == account);
  CHECK(reinterpret_cast<uint64_t>(p) % 512 == 0);
  return p;
}

void memory_comes_from_where_it_is_said(gs_account job) {
  void* host = gs_try_alloc(1000, -1, job, 0, 0);
  CHECK(host && gs_owner(host) == -1);
  memset(host, 1, 1000);
  gs_free(host, -1, 0);
  CHECK(memory_of(job).held_bytes == 0);
  CHECK(!gs_try_alloc(1000, 1, job, 0, 0) && gs_last_failure() == GS_FAILED);
  CHECK(strstr(gs_last_error(), "cuda:0 only, but cuda:1"));
  gs_free(reinterpret_cast<void*>(0x1000), 0, 0);  // nobody's: nothing happens
  gs_stream stream = new_stream();
  gs_stream_begin(job, stream);
  CHECK(gs_stream_account(stream) == job && gs_stream_account(stream + 1) == GS_SHARED);
  void* of_stream = gs_try_alloc(1000, 0, GS_SHARED, stream, 0);
  CHECK(gs_owner(of_stream) == job);
  gs_free(of_stream, 0, stream);
  gs_stream_end(stream);
  CHECK(gs_stream_account(stream) == GS_SHARED);
  gs_trim(job);
}

void questions_are_answered(gs_account job) {
  gs_memory_reset_totals(job);
  gs_memory_reset_peaks(job);
  void *small = made(100, job), *middle = made(3 * kMiB, job), *large = made(20 * kMiB, job);
  gs_memory m = memory_of(job);
  CHECK(m.live_bytes == 512 + 23 * kMiB && m.live_peak_bytes == m.live_bytes);
  CHECK(m.blocks == 3 && m.allocations == 3 && m.frees == 0);
  CHECK(m.held_bytes >= m.live_bytes && m.held_bytes % kPage == 0);
  CHECK(m.budget_bytes == kBudget && m.limit_bytes == kBudget);
  CHECK(gs_block_bytes(middle) == 3 * kMiB && gs_block_bytes(small) == 512);
  CHECK(gs_block_bytes(static_cast<char*>(middle) + 512) == 0);
  gs_free(large, 0, 0);
  gs_memory after = memory_of(job);
  CHECK(after.live_bytes == 512 + 3 * kMiB && after.live_peak_bytes == m.live_peak_bytes);
  CHECK(after.freed_bytes == 20 * kMiB && after.held_peak_bytes == m.held_bytes);
  CHECK(after.charged_bytes == m.held_bytes && after.returned_bytes == 20 * kMiB);
  gs_memory_reset_peaks(job);
  gs_memory_reset_totals(job);
  after = memory_of(job);
  CHECK(after.live_peak_bytes == after.live_bytes && after.blocks_peak == 2);
  CHECK(after.held_peak_bytes == after.held_bytes);
  CHECK(after.allocated_bytes == 0 && after.freed_bytes == 0 && after.allocations == 0);
  CHECK(after.charged_bytes == 0 && after.returned_bytes == 0);
  gs_free(small, 0, 0);
  gs_free(middle, 0, 0);
  gs_trim(job);
}

std::vector<gs_piece> pieces_of(gs_account job) {
  std::vector<gs_piece> out(gs_pieces(job, nullptr, 0));
  CHECK(gs_pieces(job, out.data(), out.size()) == out.size());
  return out;
}

// They cover what is held, and tell of every block.
void pieces_are_told(gs_account job) {
  std::vector<void*> blocks;
  for (uint64_t bytes :
       {uint64_t{512}, 5 * uint64_t{1024}, 100 * uint64_t{1024}, 3 * kMiB, 9 * kMiB})
    for (int n = 0; n < 3; ++n) blocks.push_back(made(bytes, job));
  for (size_t i = 0; i < blocks.size(); i += 2) gs_free(blocks[i], 0, 0);
  void* elsewhere = blocks[3];
  CHECK(gs_record_stream(elsewhere, new_stream()) == 0);
  gs_capture_begin(job);  // what is freed now leaves later
  gs_free(elsewhere, 0, 0);
  uint64_t bytes = 0, used = 0, later = 0, end = 0, segment = 0;
  for (const gs_piece& p : pieces_of(job)) {
    CHECK(p.segment != segment || p.address == end);  // no gap in a segment
    CHECK(p.segment == segment || p.address == p.segment);
    segment = p.segment;
    end = p.address + p.bytes;
    bytes += p.bytes;
    CHECK((p.use == GS_FREE) == (p.asked == 0) && p.asked <= p.bytes);
    used += p.use == GS_USED;
    later += p.use == GS_USED_ELSEWHERE;
    if (p.use == GS_USED) CHECK(gs_block_bytes(reinterpret_cast<void*>(p.address)) == p.asked);
  }
  CHECK(bytes == memory_of(job).held_bytes);
  CHECK(used == 6 && later == 1);
  gs_capture_end(job);
  for (size_t i = 1; i < blocks.size(); i += 2)
    if (blocks[i] != elsewhere) gs_free(blocks[i], 0, 0);
}

void a_limit_is_kept(gs_account job, gs_account other) {
  CHECK(gs_limit_set(job, 10 * kMiB) == 0);
  CHECK(memory_of(job).limit_bytes == 10 * kMiB);
  void* first = made(9 * kMiB, job);
  CHECK(!gs_try_alloc(9 * kMiB, 0, job, 0, 0) && gs_last_failure() == GS_OUT_OF_MEMORY);
  CHECK(strstr(gs_last_error(), "a limit of 10.0 MiB"));
  CHECK(memory_of(job).refusals == 1);
  void* beside = made(40 * kMiB, other);  // the other has none
  CHECK(!gs_try_alloc(40 * kMiB, 0, other, 0, 0) && gs_last_failure() == GS_OUT_OF_MEMORY);
  CHECK(strstr(gs_last_error(), "the budget is 64.0 MiB"));
  gs_free(beside, 0, 0);
  CHECK(gs_limit_set(job, UINT64_MAX) == 0);
  gs_free(made(20 * kMiB, job), 0, 0);
  gs_free(first, 0, 0);
}

// Others than this run have taken it, where the driver notices that last.
void a_full_device_is_out_of_memory(gs_account job) {
  CHECK(fake_cuda_fail("cuMemMap", 1, gpushare::cuda::CUDA_ERROR_OUT_OF_MEMORY));
  CHECK(!gs_try_alloc(9 * kMiB, 0, job, 0, 0) && gs_last_failure() == GS_OUT_OF_MEMORY);
  CHECK(strstr(gs_last_error(), "the GPU itself has none left: cuMemMap"));
  CHECK(fake_cuda_fail("cuMemMap", 1, gpushare::cuda::CUDA_ERROR_UNKNOWN));
  CHECK(!gs_try_alloc(9 * kMiB, 0, job, 0, 0) && gs_last_failure() == GS_FAILED);
  gs_free(made(9 * kMiB, job), 0, 0);
}

// Questions of one job while both allocate, in extents too: what is told must hold together.
void questions_disturb_nobody(gs_account job, gs_account other) {
  std::atomic<bool> ending{false};
  std::vector<std::thread> working;
  for (gs_account account : {job, other})
    for (unsigned t = 0; t < 2; ++t)
      working.emplace_back([account, t, &ending] {
        unsigned seed = t + static_cast<unsigned>(account) * 10;
        std::vector<void*> kept;
        while (!ending) {
          seed = seed * 1664525u + 1013904223u;
          uint64_t most = t == 0 ? 9 * kMiB : 64 << 10;
          kept.push_back(made(1 + (seed >> 4) % most, account));
          if (kept.size() < 2) continue;
          gs_free(kept[0], 0, 0);
          kept.erase(kept.begin());
        }
        for (void* p : kept) gs_free(p, 0, 0);
      });
  for (int n = 0; n < 200; ++n) {
    uint64_t end = 0;
    std::vector<gs_piece> pieces(gs_pieces(job, nullptr, 0) + 4096);
    pieces.resize(std::min<uint64_t>(gs_pieces(job, pieces.data(), pieces.size()), pieces.size()));
    for (const gs_piece& p : pieces) {
      CHECK(p.address >= end && p.asked <= p.bytes && p.segment <= p.address);
      end = p.address + p.bytes;
    }
    gs_memory m = memory_of(job);
    CHECK(m.live_bytes <= m.live_peak_bytes && m.held_bytes <= m.held_peak_bytes);
    CHECK(m.blocks <= m.blocks_peak);
    if (n % 10 == 0) gs_memory_reset_peaks(job);
    if (n % 50 == 0) CHECK(gs_limit_set(job, 60 * kMiB) == 0);
  }
  ending = true;
  for (auto& thread : working) thread.join();
  CHECK(gs_limit_set(job, UINT64_MAX) == 0);
}

}  // namespace

int main() {
  setvbuf(stdout, nullptr, _IONBF, 0);
  what_cannot_be_is_said();
  fake_cuda_reset(2);
  gs_config c = config();
  CHECK(gs_start(&c) == 0 && gs_device() == 0);
  gs_account job = gs_job_begin(0, 0), other = gs_job_begin(0, 0);
  a_full_device_is_out_of_memory(job);  // first: nothing is mapped yet
  memory_comes_from_where_it_is_said(job);
  questions_are_answered(job);
  streams_by_special_handles(job);
  a_limit_is_kept(job, other);
  pieces_are_told(job);
  questions_disturb_nobody(job, other);
  gs_job_end(job);
  gs_job_end(other);
  CHECK(gs_check() == 0);
  printf("cuda start: ok\n");
}
