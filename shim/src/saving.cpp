// Contents that leave the pool for a while and come back to the same addresses, seldom enough: the
// CPU waits here.
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>

#include "pool.h"

namespace gpushare {

namespace {
constexpr int kTries = 5;
}

uint64_t Pool::save(uint32_t account) {
  settle();
  std::vector<PageIndex> pages;
  for (PageIndex p = 0; p < address_pages_; ++p)
    if (page_[p].use == Use::kHeld && page_[p].holder == account) pages.push_back(p);
  if (pages.empty() || !device_->can_copy_out(pages.size() * page_bytes_)) return 0;
  try {
    if (Batch open = fences_->open(account)) fences_->finish(account, open);
  } catch (const DeviceFailure&) {
    return 0;
  }
  for (PageIndex p : pages) {
    if (device_->copy_out(address(p), page_bytes_)) continue;
    for (PageIndex q : pages) device_->forget(address(q), page_bytes_);  // nothing was taken yet
    return 0;
  }
  for (PageIndex p : pages) {
    device_->take_away(address(p), page_bytes_);
    Frame f = page_[p].frame;
    frames_.set_page(f, kNoPage);
    frames_.last(f) = {};
    frames_.release(f);
    if (!aliases_) frames_.remove(f);
    page_[p] = {.use = Use::kSaved, .holder = static_cast<uint8_t>(account)};
  }
  unlike_[account] += pages.size();
  return pages.size();
}

// What hold() leaves to its caller.
void Pool::do_now(const DeviceWork& work) {
  for (auto [account, batch] : work.before_unmapping) fences_->finish(account, batch);
  for (auto [account, batch] : work.waits) fences_->finish(account, batch);
  for (const DeviceWork::Mapping& m : work.mappings) {
    if (m.unmap) device_->unmap(address(m.page));
    Frame frame = m.frame;
    if (m.create && !device_->create(frame)) {
      DeviceWork other;
      if (!replace(m.page, Fences::kGone, other)) throw DeviceFailure("no memory is left");
      for (auto [account, batch] : other.waits) fences_->finish(account, batch);
      frame = other.mappings[0].frame;
    }
    for (int tries = 1;; ++tries) try {
        device_->map(address(m.page), {&frame, 1});
        break;
      } catch (const DeviceFailure&) {
        if (tries == kTries) throw;  // the host ends: the driver must have failed for good
      }
  }
}

// An idle one; false if the device has no memory left for it, though the budget has.
bool Pool::make_frame() {
  if (!aliases_ || frames_.count() >= budget_pages_) return false;
  Frame f = frames_.add();
  frames_.set_page(f, kNoPage);
  frames_.last(f) = {};
  frames_.release(f);
  try {
    if (device_->create(f)) return true;
  } catch (const DeviceFailure&) {
    // As where there is none.
  }
  frames_.remove(f);
  return false;
}

bool Pool::can_restore(uint64_t n) {
  settle();
  uint64_t found = aliases_ ? 0 : budget_pages_ - std::min(budget_pages_, frames_.count());
  std::array<bool, kNobody + 1> captures{};
  for (Frame f = frames_.oldest(); f != kNoFrame && found < n; f = frames_.next(f)) {
    const LastUse& last = frames_.last(f);
    bool ends =
        passed(last) || (!captures[last.account] && fences_->settles(last.account, last.batch));
    captures[last.account] = !ends;
    found += ends;
  }
  while (found < n && make_frame()) ++found;
  return found >= n;
}

void Pool::restore(uint32_t account) {
  settle();
  for (PageIndex p = 0; p < address_pages_; ++p) {
    Page& page = page_[p];
    if (page.use != Use::kSaved || page.holder != account) continue;
    try {
      DeviceWork work;
      find_frame(p, account, Fences::kGone, work);
      do_now(work);
      if (!device_->bring_back(address(p), page_bytes_)) throw DeviceFailure("reading it failed");
    } catch (const DeviceFailure& e) {
      fprintf(stderr, "gpushare: what was copied out can't be brought back (%s); its job is lost\n",
              e.what());
      abort();
    }
    page.use = Use::kHeld;
    --unlike_[account];
  }
}

}  // namespace gpushare
