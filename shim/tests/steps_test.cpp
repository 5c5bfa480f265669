// The governor's own answers against the search that the check is compared with: in every small
// state that it lets come about a door opens, or a step is taken, if all can end afterwards, and
// only then. So what it counts as held, claimed and kept, the headroom and leases are in it too.
#include <algorithm>
#include <optional>
#include <vector>

#include "../src/simulation.h"
#include "check.h"
#include "reachability.h"

using namespace gpushare;
using Answer = Simulation::Answer;

namespace {

constexpr uint64_t kPage = 4096;
constexpr uint32_t kAllocations = 50;  // more than anybody makes here
constexpr uint64_t kNoHeadroom = 8;    // in smaller budgets
uint64_t go_on = 0, wait = 0, leases = 0;

// `room` is for iterations; the budget has the headroom and what no job owns besides.
struct Budget {
  uint64_t room, headroom, shared;
  bool leases;
};

// Jobs that claim the same in the whole of an iteration. Nobody is asked again after a wait.
class Jobs {
 public:
  Jobs(const std::vector<Demand>& demands, const std::vector<Reachability>& search, Budget budget)
      : search_(search),
        simulation_(Policy::kZico, kPage, budget.room + budget.headroom + budget.shared) {
    CHECK(simulation_.governor().try_charge(0, budget.shared, true));
    CHECK(simulation_.governor().pool_state().headroom == budget.headroom);
    if (budget.leases) simulation_.set_split(1000);
    for (const Demand& d : demands)
      CHECK(simulation_.begin_job(std::vector<uint32_t>(kAllocations, d.claim),
                                  std::vector<uint64_t>(kAllocations, 0), d.residue));
  }

  bool open_next() {
    ++open_;
    bool expected = can_all_end(open_ - 1, 0);
    return agree(simulation_.door(open_), expected);
  }
  bool take(uint32_t i, uint64_t pages) {
    bool expected = can_all_end(i, pages);
    return agree(simulation_.hold(i + 1, account(i).held + pages), expected);
  }
  void give_back(uint32_t i, uint64_t pages) {
    simulation_.free_down_to(i + 1, account(i).held - pages);
  }
  // All doors open before anybody takes anything; whether it could be.
  bool come_to(const std::vector<uint64_t>& held, uint32_t doors) {
    for (uint32_t i = 0; i < doors; ++i)
      if (!open_next()) return false;
    for (uint32_t i = 0; i < doors; ++i)
      if (held[i] && !take(i, held[i])) return false;
    return true;
  }

 private:
  const Account& account(uint32_t i) { return simulation_.governor().account(i + 1); }

  bool can_all_end(uint32_t who, uint64_t more) {
    std::vector<uint64_t> held;
    for (uint32_t i = 0; i < open_; ++i)
      held.push_back(std::max(account(i).held + (i == who ? more : 0), account(i).lease));
    return search_[open_ - 1].all_can_end(held);
  }

  bool agree(Answer answer, bool expected) {
    CHECK(answer == (expected ? Answer::kGo : Answer::kWaits));
    ++(expected ? go_on : wait);
    for (uint32_t i = 0; i < open_; ++i) leases += account(i).lease > account(i).held;
    if (expected) CHECK(can_all_end(0, 0));  // with what was promised, too
    return expected;
  }

  const std::vector<Reachability>& search_;
  Simulation simulation_;
  uint32_t open_ = 0;
};

// Each state of what they hold.
template <class With>
void for_all_held(const std::vector<Demand>& demands, const With& with) {
  std::vector<uint64_t> held(demands.size());
  auto next = [&] {
    for (size_t i = 0; i < held.size(); held[i++] = 0)
      if (++held[i] <= demands[i].claim) return true;
    return false;
  };
  do with(held);
  while (next());
}

void ask_for_all(const std::vector<Demand>& demands, Budget budget) {
  auto n = static_cast<uint32_t>(demands.size());
  std::vector<Reachability> search;  // of the first ones
  for (uint32_t i = 1; i <= n; ++i)
    search.emplace_back(std::vector<Demand>(demands.begin(), demands.begin() + i), budget.room);
  for_all_held(demands, [&](const std::vector<uint64_t>& held) {
    if (held[n - 1] == 0)
      if (Jobs jobs(demands, search, budget); jobs.come_to(held, n - 1)) jobs.open_next();
    if (!search[n - 1].all_can_end(held)) return;  // who would come there was asked on the way
    std::optional<Jobs> jobs;
    for (uint32_t i = 0; i < n; ++i)
      for (uint64_t more = 1; held[i] + more <= demands[i].claim; ++more) {
        if (!jobs && !jobs.emplace(demands, search, budget).come_to(held, n)) return;
        if (jobs->take(i, more) && !budget.leases)
          jobs->give_back(i, more);
        else
          jobs.reset();
      }
  });
}

// Where each can run by itself.
void ask_in_all_budgets(const std::vector<Demand>& demands) {
  uint64_t least = 0, most = 0;
  for (const Demand& d : demands) least = std::max<uint64_t>(least, d.claim), most += d.claim;
  for (uint64_t room = std::max<uint64_t>(least, 1); room <= most; ++room) {
    if (room < kNoHeadroom) ask_for_all(demands, {room, 0, 0, false});
    ask_for_all(demands, {room, 1, kNoHeadroom, true});
    if (demands.size() > 2) continue;
    if (room < kNoHeadroom) ask_for_all(demands, {room, 0, 0, true});
    ask_for_all(demands, {room, 2, 64, false});
  }
}

}  // namespace

int main() {
  for_all_demands(2, 3, ask_in_all_budgets);
  for_all_demands(3, 2, ask_in_all_budgets);
  CHECK(go_on > 10000 && wait > 10000 && leases > 10000);
  printf("steps: %llu that are safe and %llu that are not, agree\n",
         static_cast<unsigned long long>(go_on), static_cast<unsigned long long>(wait));
}
