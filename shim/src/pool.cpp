#include "pool.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iterator>

namespace gpushare {

Pool::Pool(Device* device, uint64_t page_bytes, uint64_t budget_pages, uint64_t address_pages)
    : device_(device),
      page_bytes_(page_bytes),
      budget_pages_(budget_pages),
      address_pages_(address_pages),
      base_(device->reserve(address_pages * page_bytes, page_bytes)),
      page_(address_pages) {
  if (base_) insert_free(0, address_pages_);
}

void Pool::insert_free(PageIndex first, uint64_t n) {
  auto next = free_by_address_.lower_bound(first);
  if (next != free_by_address_.end() && first + n == next->first) {
    n += next->second;
    auto gone = next++;
    erase_free(gone);
  }
  if (next != free_by_address_.begin()) {
    auto before = std::prev(next);
    if (before->first + before->second == first) {
      first = before->first;
      n += before->second;
      erase_free(before);
    }
  }
  free_by_address_.emplace(first, n);
  free_by_size_.emplace(n, first);
}

void Pool::erase_free(std::map<PageIndex, uint64_t>::iterator it) {
  free_by_size_.erase({it->second, it->first});
  free_by_address_.erase(it);
}

PageIndex Pool::reserve_range(uint64_t n) {
  // Best fit, lowest address: ranges used before are small and warm, the untouched rest is large.
  auto fit = free_by_size_.lower_bound({n, 0});
  if (fit == free_by_size_.end()) return kNoPage;
  auto [size, first] = *fit;
  erase_free(free_by_address_.find(first));
  if (size > n) insert_free(static_cast<PageIndex>(first + n), size - n);
  for (PageIndex p = first; p < first + n; ++p) page_[p].use = Use::kReserved;
  return first;
}

void Pool::release_range(PageIndex first, uint64_t n) {
  for (PageIndex p = first; p < first + n; ++p) page_[p].use = Use::kFree;
  insert_free(first, n);
}

void Pool::list_push(PageIndex page) {
  Page& p = page_[page];
  p.listed = true;
  p.next = kNoPage;
  p.previous = newest_;
  (newest_ == kNoPage ? oldest_ : page_[newest_].next) = page;
  newest_ = page;
}

void Pool::list_remove(PageIndex page) {
  Page& p = page_[page];
  (p.previous == kNoPage ? oldest_ : page_[p.previous].next) = p.next;
  (p.next == kNoPage ? newest_ : page_[p.next].previous) = p.previous;
  p.listed = false;
}

void Pool::make_room(uint32_t account) {
  if (backed_ >= budget_pages_) drop_one(account);
}

void Pool::set_budget(uint64_t pages) {
  budget_pages_ = pages;
  while (backed_ > budget_pages_ && drop_one(kNobody)) {
  }
}

// Gives an idle page back to the system, for `account` to have one elsewhere.
bool Pool::drop_one(uint32_t account) {
  // The oldest page whose last user is done; on a synchronous device that is the oldest.
  PageIndex victim = oldest_;
  while (victim != kNoPage && !device_->passed(page_[victim].freed_on, page_[victim].freed_at))
    victim = page_[victim].next;
  if (victim == kNoPage) victim = oldest_;
  if (victim == kNoPage) return false;  // can't be: held pages are charged, in the budget
  Page& p = page_[victim];
  device_->finish(p.freed_on, p.freed_at);
  if (account != kNobody && p.last_account != account) ++counters_.changed_owner;
  list_remove(victim);
  device_->drop(address(victim), page_bytes_);
  p.backed = false;
  p.last_account = kNobody;
  p.freed_at = 0;
  --backed_;
  ++counters_.dropped;
  return true;
}

void Pool::wait_for_previous_users(PageIndex first, uint64_t n, Stream stream) {
  // One wait per foreign stream, for its latest event: it covers the earlier ones.
  std::map<Stream, Event> latest;
  for (PageIndex p = first; p < first + n; ++p) {
    const Page& page = page_[p];
    if (page.freed_at == 0 || page.freed_on == stream) continue;
    Event& event = latest[page.freed_on];
    event = std::max(event, page.freed_at);
  }
  for (auto [other, event] : latest) {
    if (device_->passed(other, event)) continue;
    device_->make_wait(stream, other, event);
    ++counters_.device_waits;
  }
}

void Pool::hold(PageIndex first, uint64_t n, uint32_t account, Stream stream) {
  wait_for_previous_users(first, n, stream);
  for (PageIndex p = first; p < first + n; ++p)
    if (page_[p].listed) list_remove(p);
  for (PageIndex p = first; p < first + n; ++p) {
    Page& page = page_[p];
    page.use = Use::kHeld;
    if (!page.backed) {
      make_room(account);
      page.backed = true;
      ++backed_;
    } else if (page.last_account != account && page.last_account != kNobody) {
      ++counters_.changed_owner;
    }
    page.last_account = static_cast<uint8_t>(account);
  }
}

uint64_t Pool::unhold(PageIndex first, uint64_t n, Stream stream) {
  Event event = device_->record(stream);
  uint64_t saved = 0;
  for (PageIndex p = first; p < first + n; ++p) {
    Page& page = page_[p];
    if (page.use == Use::kSaved) {
      ++saved;
      device_->forget(address(p), page_bytes_);
      page.use = Use::kReserved;
      page.last_account = kNobody;
      continue;
    }
    page.use = Use::kReserved;
    page.freed_on = stream;
    page.freed_at = event;
    list_push(p);
  }
  return saved;
}

uint64_t Pool::save(uint32_t account) {
  std::vector<PageIndex> pages;
  for (PageIndex p = 0; p < address_pages_; ++p)
    if (page_[p].use == Use::kHeld && page_[p].last_account == account) pages.push_back(p);
  for (PageIndex p : pages) {
    if (device_->copy_out(address(p), page_bytes_)) continue;
    for (PageIndex q : pages) device_->forget(address(q), page_bytes_);  // nothing was taken yet
    return 0;
  }
  for (PageIndex p : pages) {
    device_->take_away(address(p), page_bytes_);
    page_[p] = {.use = Use::kSaved, .last_account = static_cast<uint8_t>(account)};
    --backed_;
  }
  return pages.size();
}

void Pool::restore(uint32_t account) {
  for (PageIndex p = 0; p < address_pages_; ++p) {
    Page& page = page_[p];
    if (page.use != Use::kSaved || page.last_account != account) continue;
    make_room(account);
    if (!device_->bring_back(address(p), page_bytes_)) {
      fprintf(stderr,
              "gpushare: what was copied out can't be read back; the job's memory is lost\n");
      abort();
    }
    page.use = Use::kHeld;
    page.backed = true;
    ++backed_;
  }
}

std::string Pool::check(uint64_t held) const {
  uint64_t held_pages = 0, backed = 0, listed = 0, free_pages = 0;
  for (const Page& p : page_) {
    held_pages += p.use == Use::kHeld;
    backed += p.backed;
    listed += p.listed;
    free_pages += p.use == Use::kFree;
    if (p.use == Use::kHeld && !p.backed) return "a held page has no memory behind it";
    if (p.listed != (p.backed && p.use != Use::kHeld)) return "the list of idle pages is wrong";
  }
  // A charge comes before the pages it is for.
  if (held_pages > held) return "more pages are held than charged";
  if (backed != backed_) return "the count of backed pages is wrong";
  if (backed_ > budget_pages_) return "more pages are backed than the budget has";
  uint64_t in_list = 0, in_ranges = 0;
  for (PageIndex p = oldest_; p != kNoPage; p = page_[p].next) ++in_list;
  if (in_list != listed) return "the list of idle pages is broken";
  PageIndex end = 0;
  bool first = true;
  for (auto [start, n] : free_by_address_) {
    if (!first && start <= end) return "free ranges overlap or are not joined";
    first = false;
    end = static_cast<PageIndex>(start + n);
    in_ranges += n;
    for (PageIndex p = start; p < end; ++p)
      if (page_[p].use != Use::kFree) return "a used page lies in a free range";
  }
  if (in_ranges != free_pages || free_by_size_.size() != free_by_address_.size())
    return "free pages are missing from the free ranges";
  return "";
}

}  // namespace gpushare
