// Contents that leave the pool for a while and come back to the same addresses: the scheduler's
// last resort. The CPU waits here; nobody else could go on anyway.
#include <cstdio>
#include <cstdlib>

#include "pool.h"

namespace gpushare {

uint64_t Pool::save(uint32_t account) {
  std::vector<PageIndex> pages;
  for (PageIndex p = 0; p < address_pages_; ++p)
    if (page_[p].use == Use::kHeld && page_[p].account == account) pages.push_back(p);
  if (pages.empty()) return 0;
  if (Batch open = fences_->open(account)) fences_->finish(account, open);
  for (PageIndex p : pages) {
    if (device_->copy_out(address(p), page_bytes_)) continue;
    for (PageIndex q : pages) device_->forget(address(q), page_bytes_);  // nothing was taken yet
    return 0;
  }
  for (PageIndex p : pages) {
    device_->take_away(address(p), page_bytes_);
    Frame f = page_[p].frame;
    frames_.set_page(f, kNoPage);
    frames_.release(f);
    if (!aliases_) frames_.remove(f);
    page_[p] = {.use = Use::kSaved, .account = static_cast<uint8_t>(account)};
  }
  return pages.size();
}

// What hold() leaves to its caller.
void Pool::do_now(const DeviceWork& work) {
  for (auto [account, batch] : work.before_unmapping) fences_->finish(account, batch);
  for (auto [account, batch] : work.waits) fences_->finish(account, batch);
  for (const DeviceWork::Mapping& m : work.mappings) {
    if (m.unmap) device_->unmap(address(m.page));
    if (m.create && !device_->create(m.frame)) throw DeviceFailure("no memory is left");
    device_->map(address(m.page), {&m.frame, 1});
  }
}

void Pool::restore(uint32_t account) {
  for (PageIndex p = 0; p < address_pages_; ++p) {
    Page& page = page_[p];
    if (page.use != Use::kSaved || page.account != account) continue;
    try {
      DeviceWork work;
      find_frame(p, account, 0, work);
      do_now(work);
      if (!device_->bring_back(address(p), page_bytes_)) throw DeviceFailure("reading it failed");
    } catch (const DeviceFailure& e) {
      fprintf(stderr, "gpushare: what was copied out can't be brought back (%s); its job is lost\n",
              e.what());
      abort();
    }
    page.use = Use::kHeld;
  }
}

}  // namespace gpushare
