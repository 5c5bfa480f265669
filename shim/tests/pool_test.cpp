// Random programs over several streams and owners on the asynchronous device: no owner ever reads a
// byte that another wrote, the counts hold, and all that is freed becomes one range again.
#include "../src/pool.h"

#include <vector>

#include "check.h"
#include "fake_device.h"

using namespace gpushare;

namespace {

constexpr uint64_t kPage = 4096, kBudget = 24, kAddresses = 24 * 16;

struct Extent {
  PageIndex first;
  uint64_t n;
  uint32_t account;
  Stream stream;
  char value;
};

uint64_t random_program(uint64_t seed) {
  std::mt19937_64 random(seed);
  FakeDevice device(seed + 1);
  Fences fences(&device, 4, kBudget * kPage);
  for (uint32_t account = 1; account < 4; ++account)
    for (Stream stream = 1; stream < 4; ++stream) fences.add_stream(account, 10 * account + stream);
  Pool pool(&device, &fences, kPage, kBudget, kAddresses);
  std::vector<Extent> live;
  uint64_t held = 0;
  char value = 0;
  for (int step = 0; step < 200; ++step) {
    bool take = live.empty() || random() % 2;
    uint64_t n = 1 + random() % 6;
    if (take && held + n <= kBudget) {
      uint32_t account = 1 + random() % 3;
      Stream stream = 10 * account + 1 + random() % 3;
      PageIndex first = pool.reserve_range(n);
      CHECK(first != kNoPage);
      DeviceWork work;
      pool.hold(first, n, account, stream, work);
      for (auto [other, batch] : work.waits) fences.wait(stream, other, batch);
      held += n;
      value = static_cast<char>(value + 1);
      live.push_back({first, n, account, stream, value});
      device.write(stream, pool.address(first), n * kPage, value);
    } else if (!live.empty()) {
      size_t i = random() % live.size();
      Extent e = live[i];
      device.read(e.stream, pool.address(e.first), e.n * kPage, e.value);
      pool.unhold(e.first, e.n, e.stream);
      pool.release_range(e.first, e.n);
      held -= e.n;
      live.erase(live.begin() + static_cast<long>(i));
    }
    device.run(random() % 4);
    if (random() % 8 == 0) fences.close(1 + random() % 3);
    if (random() % 8 == 0) fences.poll_all();
    CHECK_EMPTY(pool.check(held));
  }
  for (const Extent& e : live) {
    pool.unhold(e.first, e.n, e.stream);
    pool.release_range(e.first, e.n);
  }
  device.run_all();
  CHECK(device.idle());
  CHECK(device.wrong_reads() == 0);
  CHECK_EMPTY(pool.check(0));
  CHECK(pool.reserve_range(kAddresses) == 0);  // one range again
  return fences.counters().device_waits;
}

}  // namespace

int main() {
  uint64_t waits = 0;
  for (uint64_t seed = 0; seed < 300; ++seed) waits += random_program(seed);
  CHECK(waits > 1000);  // the programs really hand memory from stream to stream
  printf("pool: 300 programs, %llu device waits\n", static_cast<unsigned long long>(waits));
}
