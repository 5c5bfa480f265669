#include "simulation.h"

#include <algorithm>
#include <stdexcept>

#include "clock.h"

namespace gpushare {

constinit thread_local const uint64_t* virtual_now = nullptr;

namespace {

constexpr uint64_t kAddressShare = 16;  // budgets of addresses, as gs_start reserves them
const std::atomic<Stream> kOnlyStream{0};

// Within its scope the thread's clock is the simulation's.
class OwnClock {
 public:
  explicit OwnClock(const uint64_t* now) : before_(std::exchange(virtual_now, now)) {}
  ~OwnClock() { virtual_now = before_; }

 private:
  const uint64_t* before_;
};

}  // namespace

Simulation::Simulation(Policy policy, uint64_t page_bytes, uint64_t budget_pages, Device* device)
    : page_bytes_(page_bytes) {
  OwnClock clock(&now_ns_);
  if (!telemetry_.open(-1)) throw std::runtime_error("the telemetry memory can't be mapped");
  governor_ = std::make_unique<Governor>(device ? device : &device_, policy, page_bytes,
                                         budget_pages, budget_pages * kAddressShare, &telemetry_);
}

Simulation::~Simulation() { telemetry_.close(); }

uint32_t Simulation::begin_job(std::vector<uint32_t> held, std::vector<uint64_t> time_ns,
                               uint64_t residue, uint64_t duration_ns) {
  OwnClock clock(&now_ns_);
  int32_t id = governor_->begin_job(held.empty() ? 1 : 0);
  if (id < 0) return 0;
  auto account = static_cast<uint32_t>(id);
  if (!held.empty())
    governor_->set_curve(account, std::move(held), std::move(time_ns), residue, duration_ns);
  governor_->thread_enters(account);
  return account;
}

Simulation::Answer Simulation::hold(uint32_t id, uint64_t pages) {
  OwnClock clock(&now_ns_);
  Governor& g = *governor_;
  Account& a = g.account(id);
  uint64_t held = a.held;
  if (pages > held) {
    Governor::Lock lock(g.mutex_);
    uint64_t n = pages - held;
    Governor::Judged judged = g.decide(a, n, false, 0);
    switch (judged.verdict) {
      case Governor::Verdict::kImpossible:
        refusal_ = g.figures(a, n, n * page_bytes_);
        g.telemetry_->add(id, kOomCount, 1);
        return Answer::kRefused;
      case Governor::Verdict::kWait:
        new_waiter(id, n);
        g.begin_memory_wait(*jobs_[id].waiter, judged.shut);
        ++a.waiting_threads;
        return Answer::kWaits;
      case Governor::Verdict::kGo:
        g.add_pages(a, n, judged.over);
    }
    lock.unlock();
    take(id, n);
  } else if (pages < held) {
    give(id, held - pages);
  }
  note(id);
  return Answer::kGo;
}

void Simulation::free_down_to(uint32_t id, uint64_t pages) {
  OwnClock clock(&now_ns_);
  uint64_t held = governor_->account(id).held;
  if (held > pages) give(id, held - pages);
}

void Simulation::mark(uint32_t id) {
  OwnClock clock(&now_ns_);
  governor_->mark(id);
}

Simulation::Answer Simulation::door(uint32_t id) {
  OwnClock clock(&now_ns_);
  governor_->mark(id);
  Governor::Lock lock(governor_->mutex_);
  new_waiter(id, 0);
  if (governor_->come_to_door(*jobs_[id].waiter)) {
    ++governor_->account(id).waiting_threads;
    return Answer::kWaits;
  }
  jobs_[id].waiter.reset();
  return Answer::kGo;
}

Simulation::Answer Simulation::look(uint32_t id) {
  OwnClock clock(&now_ns_);
  Governor& g = *governor_;
  if (!jobs_[id].waiter) return Answer::kGo;
  if (!jobs_[id].waiter->done) return Answer::kWaits;
  auto waiter = std::move(jobs_[id].waiter);
  Governor::Lock lock(g.mutex_);
  try {
    if (waiter->pages == 0) {
      uint64_t passed = *std::ranges::max_element(waiter->starts_seen);
      jobs_[id].most_passed = std::max(jobs_[id].most_passed, passed);
      g.leave_door(*waiter, lock);
      return Answer::kGo;
    }
    g.end_memory_wait(*waiter);
    if (waiter->refused) g.refuse(g.account(id), waiter->pages, waiter->pages * page_bytes_, lock);
  } catch (const OutOfMemory& e) {
    refusal_ = e.what();
    return Answer::kRefused;
  }
  lock.unlock();
  take(id, waiter->pages);
  note(id);
  return Answer::kGo;
}

uint64_t Simulation::ready() const {
  uint64_t bits = 0;
  for (uint32_t id = 1; id < kAccounts; ++id)
    if (jobs_[id].waiter && jobs_[id].waiter->done) bits |= uint64_t{1} << id;
  return bits;
}

void Simulation::end_job(uint32_t id) {
  OwnClock clock(&now_ns_);
  give(id, governor_->account(id).held);
  governor_->thread_leaves(id);
  governor_->end_job(id);
}

void Simulation::tick() {
  OwnClock clock(&now_ns_);
  governor_->tick();
}

void Simulation::look_at_doors() {
  OwnClock clock(&now_ns_);
  governor_->look_at_doors();
}

std::string Simulation::set_budget(uint64_t pages) {
  OwnClock clock(&now_ns_);
  return governor_->set_budget(pages);
}

void Simulation::set_permits(const std::vector<PairPermit>& permits) {
  OwnClock clock(&now_ns_);
  governor_->set_permits(permits);
}

void Simulation::set_split(uint64_t pages) {
  OwnClock clock(&now_ns_);
  governor_->set_split(pages);
}

void Simulation::set_order(Order order, uint64_t quantum_ns) {
  OwnClock clock(&now_ns_);
  governor_->set_order(order, quantum_ns);
}

void Simulation::set_rank(uint32_t id, int64_t rank) {
  OwnClock clock(&now_ns_);
  governor_->set_rank(id, rank);
}

void Simulation::set_aside(uint64_t accounts) {
  OwnClock clock(&now_ns_);
  governor_->set_aside(accounts);
}

uint64_t Simulation::version() { return governor_->wait_change(0, 0); }

// Between a grant and look() pages are charged that the pool has not given out yet.
std::string Simulation::check() { return ready() ? "" : governor_->check(); }

// Puts pages that are charged where there are addresses for them, in as few ranges as it takes.
void Simulation::take(uint32_t id, uint64_t n) {
  DeviceWork none;
  for (uint64_t most = n; n > 0; most = std::min(most, n)) {
    PageIndex first = governor_->hold_range(most, id, 0, none);
    if (first == kNoPage) {
      most = std::max<uint64_t>(1, most / 2);
      continue;
    }
    jobs_[id].ranges.emplace_back(first, most);
    n -= most;
  }
}

void Simulation::give(uint32_t id, uint64_t n) {
  auto& ranges = jobs_[id].ranges;
  while (n > 0) {
    auto& [first, length] = ranges.back();
    uint64_t some = std::min(n, length);
    length -= some;
    PageIndex from = first + length;
    if (length == 0) ranges.pop_back();
    governor_->unhold(from, some, id, kOnlyStream, true);
    n -= some;
  }
}

void Simulation::note(uint32_t id) {
  Account& a = governor_->account(id);
  if (a.in_iteration) a.recorder.note(a.held, a.held);
}

void Simulation::new_waiter(uint32_t id, uint64_t pages) {
  jobs_[id].waiter = std::make_unique<Waiter>();
  Waiter& w = *jobs_[id].waiter;
  w.id = id;
  w.pages = pages;
  w.since_ns = now_ns();
}

}  // namespace gpushare
