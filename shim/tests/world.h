// A governor on the host device with a sampler that checks, and jobs that take and give pages.
#pragma once

#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>
#include <vector>

#include "../src/devices/host.h"
#include "../src/governor.h"
#include "check.h"

using namespace gpushare;
using std::chrono::milliseconds;

constexpr uint64_t kPage = 4096;
inline const std::atomic<Stream> kOnly{0};

struct World {
  Telemetry telemetry = opened();
  HostDevice device;
  Governor governor;
  std::atomic<bool> ending{false};
  std::thread ticker;
  World(Policy policy, uint64_t budget, bool ticks = true, Device* other = nullptr)
      : governor(other ? other : &device, policy, kPage, budget, budget * 16, &telemetry),
        ticker([this, ticks] {
          while (ticks && !ending) {
            std::this_thread::sleep_for(milliseconds(5));
            governor.tick();
            CHECK_EMPTY(governor.check());
          }
        }) {}
  ~World() {
    ending = true;
    ticker.join();
  }
  static Telemetry opened() {
    Telemetry t;
    CHECK(t.open(-1));
    return t;
  }
  void permit_all(uint32_t jobs, Permit permit = {true, 0, 0}) {
    for (uint32_t a = 1; a <= jobs; ++a)
      for (uint32_t b = 1; b <= jobs; ++b) governor.set_permits({{a, b, permit}});
  }
};

struct Job {
  World& w;
  uint32_t id;
  std::vector<PageIndex> pages = {};

  Job(World& world, uint32_t account) : w(world), id(account) {}
  virtual ~Job() = default;
  virtual void take() {
    w.governor.charge(id, 1, false, kPage);
    DeviceWork none;
    pages.push_back(w.governor.hold_range(1, id, 0, none));
    CHECK(pages.back() != kNoPage);
    Account& a = w.governor.account(id);
    if (a.in_iteration) a.recorder.note(a.held, kPage);
  }
  virtual void give() {
    w.governor.unhold(pages.back(), 1, id, kOnly, true);
    pages.pop_back();
  }
  // Up to `peak` pages and down to `residue`.
  void iterate(uint64_t peak, uint64_t residue) {
    w.governor.mark(id);
    w.governor.pass_door(id);
    while (pages.size() < peak) take();
    std::this_thread::yield();
    while (pages.size() > residue) give();
  }
  void end() {
    while (!pages.empty()) give();
    w.governor.end_job(id);
  }
};
