// Two jobs that pass memory to each other, iteration after iteration: where they alternate nothing
// is mapped any more once each page has been at the addresses where it is wanted. The CPU never
// waits, though the device is always late.
#include <memory>
#include <random>
#include <vector>

#include "../src/devices/cuda.h"
#include "../src/runtime.h"
#include "check.h"
#include "fake_cuda/fake_cuda.h"

using namespace gpushare;
using namespace gpushare::cuda;

namespace {

constexpr uint64_t kPage = 64 << 10, kRegion = 16 * kPage;
constexpr int kSteps = 24, kIterations = 60, kSettled = 20;

class Job {
 public:
  Job(const Driver& driver, Runtime& runtime, uint64_t seed) : runtime_(runtime), seed_(seed) {
    account_ = static_cast<uint32_t>(runtime.governor().begin_job(0));
    driver.check(driver.cuStreamCreate(&stream_, CU_STREAM_DEFAULT), "cuStreamCreate");
  }
  // A step of a forward pass, and one of a backward pass.
  void up() {
    if (blocks_.empty()) random_.seed(seed_);
    uint64_t most = uint64_t{1} << (4 + random_() % 10), bytes = 64 * (1 + random_() % most);
    auto* p = static_cast<char*>(
        runtime_.allocate(bytes, account_, reinterpret_cast<Stream>(stream_), false));
    blocks_.push_back({p, bytes, ++tag_});
    fake_cuda_launch_write(stream_, reinterpret_cast<CUdeviceptr>(p), bytes, tag_);
  }
  bool live() const { return !blocks_.empty(); }
  void down() {
    auto [p, bytes, tag] = blocks_.back();
    blocks_.pop_back();
    fake_cuda_launch_read(stream_, reinterpret_cast<CUdeviceptr>(p), bytes, tag);
    CHECK(runtime_.release(p));
  }

 private:
  Runtime& runtime_;
  uint64_t seed_, tag_ = 0;
  uint32_t account_;
  CUstream stream_ = nullptr;
  struct Block {
    char* address;
    uint64_t bytes, tag;
  };
  std::vector<Block> blocks_;
  std::mt19937_64 random_;
};

// One after the other, or `overlap`: each one's forward pass beside the other's backward pass.
void repeat(const Driver& driver, bool overlap) {
  fake_cuda_reset(overlap);
  fake_cuda_set_granularity(kPage);
  driver.check(driver.cuInit(0), "cuInit");
  Telemetry telemetry;
  CHECK(telemetry.open(-1));
  CudaDevice device(&driver, 0);
  uint64_t budget = 108;
  gs_config config{budget * kPage, kPage, kRegion, 0, GS_UNMANAGED, -1, 0, -1, 0,
                   GS_CUDA,        0,     nullptr};
  Runtime runtime(config, &device, &telemetry);
  Job one(driver, runtime, 7), two(driver, runtime, 8);
  const PoolCounters& pool = runtime.governor().pool().counters();
  uint64_t mapped = 0, changed_owner = 0;
  for (int n = 0; n < kIterations; ++n) {
    if (n == kSettled) mapped = pool.mapped, changed_owner = pool.changed_owner;
    for (auto [rising, other] : {std::pair(&one, &two), std::pair(&two, &one)}) {
      for (int i = 0; i < kSteps; ++i) {
        if (overlap && other->live()) other->down();
        rising->up();
        fake_cuda_run(2);
      }
      while (!overlap && rising->live()) rising->down(), fake_cuda_run(2);
    }
    runtime.tick();
  }
  CHECK(pool.changed_owner > changed_owner + kIterations);  // memory really passes
  // Side by side some pages want a frame that is held where it lay the last time, again and again.
  uint64_t later = pool.mapped - mapped, passed = pool.changed_owner - changed_owner;
  CHECK(overlap ? later < passed : later == 0);
  CHECK(runtime.governor().fences().counters().cpu_waits == 0);
  fake_cuda_run_all();
  fake_cuda_counters c = fake_cuda_read_counters();
  CHECK(c.wrong_reads == 0 && c.misuses == 0);
  auto n = [](uint64_t value) { return static_cast<unsigned long long>(value); };
  printf("cuda steady%s: %llu mappings, then %llu for %llu pages that passed\n",
         overlap ? ", side by side" : "", n(mapped), n(later), n(passed));
}

}  // namespace

int main() {
  setvbuf(stdout, nullptr, _IONBF, 0);
  Driver driver(GPUSHARE_FAKE_CUDA);
  repeat(driver, false);
  repeat(driver, true);
}
