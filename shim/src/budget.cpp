// Changing the budget while jobs run. More is there at once; less as soon as what is held fits, and
// every open iteration can still end within it. Until then nothing new starts that does not fit the
// smaller budget too, so that the moment comes.
#include <algorithm>
#include <cstdio>

#include "governor.h"

namespace gpushare {

namespace {

std::string in_unit(uint64_t bytes, const char* format, int shift) {
  char text[32];
  snprintf(text, sizeof text, format,
           static_cast<double>(bytes) / static_cast<double>(1ull << shift));
  return text;
}

std::string mib(uint64_t bytes) { return in_unit(bytes, "%.1f MiB", 20); }

// As `units.format_bytes` has it.
std::string size(uint64_t bytes) {
  return bytes < 1ull << 30 ? mib(bytes) : in_unit(bytes, "%.2f GiB", 30);
}

// Two sizes of which it matters that one is larger: in MiB where they would look the same.
std::string refusal(uint64_t wanted, const char* why, uint64_t bound) {
  bool alike = size(wanted) == size(bound);
  return "the budget can't be " + (alike ? mib(wanted) : size(wanted)) + why +
         (alike ? mib(bound) : size(bound));
}

}  // namespace

// What must stay if all jobs are at their doors; and what the most demanding of them needs alone.
uint64_t Judge::least_budget() const {
  uint64_t shared = accounts_[0].held.load(std::memory_order_relaxed), residues = shared, most = 0;
  for (const Account& a : accounts()) {
    if (!a.id) continue;
    uint64_t held = a.held.load(std::memory_order_relaxed) + (a.abandoned ? 0 : a.saved);
    residues += a.open && a.curve.known() ? std::min(held, a.curve.residue()) : held;
    // An open iteration that has exceeded its claim: the next one will claim that.
    uint64_t here = a.open ? a.held_max_here : 0;
    if (a.live_job() && a.curve.known())
      most = std::max(most, shared + std::max(a.curve.claim(0), here));
  }
  // What is asked for beyond a claim, in an iteration that goes on where that comes.
  for (const Waiter* w : memory_waiters_) {
    const Account& a = accounts_[w->id];
    uint64_t held = a.held.load(std::memory_order_relaxed) + a.saved;
    if (a.open && a.curve.known()) most = std::max(most, shared + held + w->pages);
  }
  return std::max(residues, most);
}

std::string Governor::set_budget(uint64_t pages) {
  Lock lock(mutex_);
  uint64_t page = pool_.page_bytes(), least = least_budget();
  if (pages == 0 || pages < least)
    return refusal(pages * page, ": the jobs need at least ", std::max<uint64_t>(least, 1) * page);
  if (2 * pages > pool_.pages())
    return refusal(pages * page, ": at the start addresses were reserved for ",
                   pool_.pages() / 2 * page);
  want_budget(pages);
  settle_budget();
  changed();
  pump();
  return "";
}

void Governor::want_budget(uint64_t pages) {
  wanted_budget_ = pages;
  telemetry_->header(kWantedBudget, pages * pool_.page_bytes());
}

// Whether every open iteration can end within the wanted budget, as far as they are known, and the
// jobs have not come to need more since it was asked for.
bool Judge::cut_fits() const {
  bool any_open = false;
  for (const Account& a : accounts()) {
    bool comes_back = a.saved && !a.abandoned && !stands_aside(a) && !sleeps_away(a);
    if (comes_back || (a.open && !a.curve.known())) return false;
    any_open |= a.open;
  }
  uint64_t reserve = any_open ? std::min(headroom_, wanted_budget_ / kMostHeadroomShare) : 0;
  return wanted_budget_ >= least_budget() &&
         safe_after(accounts_[0], 0, 0, wanted_budget_ - reserve);
}

// Makes the wanted budget the budget if it can be now. A cut that has come to be too deep is off.
void Governor::settle_budget() {
  if (wanted_budget_ == budget_) return;
  if (wanted_budget_ < budget_) drop_leases();  // what is held counts
  if (wanted_budget_ < budget_ && !cut_fits()) {
    bool all_at_doors = std::ranges::none_of(accounts(), [](const Account& a) { return a.open; });
    if (uint64_t least = least_budget(); all_at_doors && wanted_budget_ < least) {
      ++cuts_given_up_;
      cut_needs_ = least;
      want_budget(budget_);
      changed();
    }
    return;
  }
  budget_ = wanted_budget_;
  headroom_ = std::min(headroom_, budget_ / kMostHeadroomShare);
  pool_.set_budget(budget_);
  telemetry_->header(kBudget, budget_ * pool_.page_bytes());
  telemetry_->header(kHeadroom, headroom_ * pool_.page_bytes());
  changed();
}

}  // namespace gpushare
