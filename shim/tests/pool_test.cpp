// Random programs over several streams and owners on the asynchronous device: no owner ever reads a
// byte that another wrote, the counts hold, and all that is freed becomes one range again. Whoever
// takes again what it has just given up finds it as it was. Some give up what they never used.
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

// Addresses that stay with an owner, and the value on each page that it holds; 0: not held.
struct Area {
  PageIndex first;
  uint32_t account;
  Stream stream;
  std::vector<char> values;
};

class Program {
 public:
  explicit Program(uint64_t seed) : random_(seed), device_(seed + 1) {
    for (uint32_t account = 1; account < 4; ++account)
      for (Stream stream = 1; stream < 4; ++stream)
        fences_.add_stream(account, 10 * account + stream);
    for (uint32_t account = 1; account < 4; ++account)
      areas_.push_back(
          {pool_.reserve_range(kArea), account, 10 * account + 1, std::vector<char>(kArea, 0)});
  }

  void step() {
    switch (random_() % 4) {
      case 0:
        take_extent();
        break;
      case 1:
        give_extent();
        break;
      case 2:
        take_pages(areas_[random_() % areas_.size()]);
        break;
      default:
        give_pages(areas_[random_() % areas_.size()]);
    }
    device_.run(random_() % 4);
    if (random_() % 8 == 0) fences_.close(1 + random_() % 3);
    if (random_() % 8 == 0) fences_.poll_all();
    if (random_() % 16 == 0) CHECK_EMPTY(pool_.check(held_));  // settles what is recent
  }

  uint64_t end() {
    while (!live_.empty()) give_extent();
    for (Area& a : areas_) {
      for (uint64_t i = 0; i < kArea; ++i)
        if (a.values[i]) pool_.unhold(a.first + static_cast<PageIndex>(i), 1, a.stream);
      pool_.release_range(a.first, kArea);
    }
    device_.run_all();
    CHECK(device_.idle());
    CHECK(device_.wrong_reads() == 0);
    CHECK_EMPTY(pool_.check(0));
    CHECK(pool_.reserve_range(kAddresses) == 0);  // one range again
    return fences_.counters().device_waits;
  }

 private:
  static constexpr uint64_t kArea = 8;

  char next_value() {
    value_ = static_cast<char>(value_ == 127 ? 1 : value_ + 1);
    return value_;
  }

  void wait(const DeviceWork& work, Stream stream) {
    for (auto [other, batch] : work.waits) fences_.wait(stream, other, batch, 0);
  }

  void take_extent() {
    uint64_t n = 1 + random_() % 6;
    if (held_ + n > kBudget) return;
    uint32_t account = 1 + random_() % 3;
    Stream stream = 10 * account + 1 + random_() % 3;
    DeviceWork work;
    PageIndex first = pool_.hold_range(n, account, stream, work);
    CHECK(first != kNoPage);
    if (random_() % 8 == 0) {
      pool_.give_up(work);
      CHECK(pool_.unhold_range(first, n, stream) == 0);
      return;
    }
    wait(work, stream);
    held_ += n;
    live_.push_back({first, n, account, stream, next_value()});
    device_.write(stream, pool_.address(first), n * kPage, value_);
  }

  void give_extent() {
    if (live_.empty()) return;
    size_t i = random_() % live_.size();
    Extent e = live_[i];
    device_.read(e.stream, pool_.address(e.first), e.n * kPage, e.value);
    CHECK(pool_.unhold_range(e.first, e.n, e.stream) == 0);
    held_ -= e.n;
    live_.erase(live_.begin() + static_cast<long>(i));
  }

  // A random part of the area, up to where its pages are no longer as the first one is.
  std::pair<uint64_t, uint64_t> part(const Area& a) {
    uint64_t from = random_() % kArea, to = from, most = std::min(kArea, from + 1 + random_() % 6);
    while (to < most && !a.values[to] == !a.values[from]) ++to;
    return {from, to};
  }

  void take_pages(Area& a) {
    auto [from, to] = part(a);
    if (a.values[from] || held_ + to - from > kBudget) return;
    DeviceWork work;
    PageIndex first = a.first + static_cast<PageIndex>(from);
    pool_.hold(first, to - from, a.account, a.stream, work);
    if (random_() % 8 == 0) {
      pool_.give_up(work);
      CHECK(pool_.unhold(first, to - from, a.stream) == 0);
      return;
    }
    wait(work, a.stream);
    held_ += to - from;
    for (uint64_t i = from; i < to; ++i) {
      a.values[i] = next_value();
      device_.write(a.stream, pool_.address(a.first + static_cast<PageIndex>(i)), kPage, value_);
    }
  }

  void give_pages(Area& a) {
    auto [from, to] = part(a);
    if (!a.values[from]) return;
    for (uint64_t i = from; i < to; ++i) {
      char* address = pool_.address(a.first + static_cast<PageIndex>(i));
      device_.read(a.stream, address, kPage, std::exchange(a.values[i], 0));
    }
    CHECK(pool_.unhold(a.first + static_cast<PageIndex>(from), to - from, a.stream) == 0);
    held_ -= to - from;
  }

  std::mt19937_64 random_;
  FakeDevice device_;
  Fences fences_{&device_, 4, kBudget* kPage};
  Pool pool_{&device_, &fences_, kPage, kBudget, kAddresses};
  std::vector<Extent> live_;
  std::vector<Area> areas_;
  uint64_t held_ = 0;
  char value_ = 0;
};

// Whose stream is none's waits on the CPU, so it looks on for memory that is ready; but once it has
// its own, not through all of that for another's.
void looks_no_further_than_it_must() {
  constexpr uint64_t kOwn = 100, kOthers = 10;  // more than are looked at
  FakeDevice device(1);
  Fences fences(&device, 3, kBudget * kPage);
  Pool pool(&device, &fences, kPage, kOwn + kOthers, kAddresses);
  fences.add_stream(1, 11);
  fences.add_stream(2, 21);
  DeviceWork work;
  PageIndex own = pool.reserve_range(kOwn), others = pool.reserve_range(kOthers);
  pool.hold(own, kOwn, 1, 11, work);
  pool.hold(others, kOthers, 2, 21, work);
  CHECK(pool.unhold(own, kOwn, 11) + pool.unhold(others, kOthers, 21) == 0);
  for (uint32_t account : {1, 2}) fences.finish(account, fences.open(account));
  CHECK(pool.hold_range(1, 1, Fences::kGone, work) != kNoPage);
  CHECK(pool.counters().changed_owner == 0);
  CHECK_EMPTY(pool.check(1));
}

}  // namespace

int main() {
  looks_no_further_than_it_must();
  uint64_t waits = 0;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    Program program(seed);
    for (int step = 0; step < 400; ++step) program.step();
    waits += program.end();
  }
  CHECK(waits > 1000);  // the programs really hand memory from stream to stream
  printf("pool: 300 programs, %llu device waits\n", static_cast<unsigned long long>(waits));
}
