// Ranges of free addresses: the smallest that are large enough, and of these the place that needs
// the fewest mappings.
#include <algorithm>
#include <iterator>

#include "pool.h"

namespace gpushare {

namespace {
constexpr int kRanges = 8;             // that are compared
constexpr uint64_t kStalls = 1 << 20;  // pages that one worth waiting for counts as
}  // namespace

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

// Pages of the range that need another frame than the one that lies there.
uint64_t Pool::cost(PageIndex first, uint64_t n) {
  uint64_t sum = 0;
  ++looks_;
  for (PageIndex p = first; p < first + n; ++p) {
    const Page& page = page_[p];
    if (page.use == Use::kHeld) continue;
    Frame f = page.frame;
    // One frame can lie at two of the pages.
    if (f != kNoFrame && frames_.idle(f) && frames_.first_met(f, looks_)) continue;
    sum += !occupied(page) || passed(page) ? 1 : kStalls;
  }
  return sum;
}

bool Pool::stalls(PageIndex first, uint64_t n) {
  if (!aliases_) return false;
  // Their frames lie there, whoever gave them up.
  if (std::ranges::any_of(recent_, [&](const Run& r) { return lies_in(r, first, n); }))
    return false;
  settle();
  return cost(first, n) >= kStalls;
}

// The first n pages of a range that nothing on the device may still use.
PageIndex Pool::find_quiet(PageIndex begin, uint64_t pages, uint64_t n) const {
  uint64_t quiet = 0;
  for (PageIndex p = begin; p < begin + pages; ++p) {
    quiet = !occupied(page_[p]) || passed(page_[p]) ? quiet + 1 : 0;
    if (quiet == n) return static_cast<PageIndex>(p + 1 - n);
  }
  return kNoPage;
}

PageIndex Pool::reserve_range(uint64_t n) {
  settle();
  auto fit = free_by_size_.lower_bound({n, 0});
  if (fit == free_by_size_.end()) return kNoPage;
  auto [size, first] = *fit;
  PageIndex range = first;
  uint64_t least = cost(first, n);
  int looked_at = 1;
  // At either end of a range.
  auto consider = [&](uint64_t pages, PageIndex begin) {
    for (PageIndex at : {begin, static_cast<PageIndex>(begin + pages - n)}) {
      uint64_t c = cost(at, n);
      if (c < least) least = c, first = at, range = begin, size = pages;
    }
  };
  for (; least && fit != free_by_size_.end() && looked_at <= kRanges; ++fit, ++looked_at)
    consider(fit->first, fit->second);
  if (least >= kStalls) {
    auto [pages, begin] = *free_by_size_.rbegin();
    PageIndex at = find_quiet(begin, pages, n);
    if (at != kNoPage) first = at, range = begin, size = pages;
  }
  erase_free(free_by_address_.find(range));
  if (first > range) insert_free(range, first - range);
  uint64_t rest = range + size - first - n;
  if (rest) insert_free(static_cast<PageIndex>(first + n), rest);
  for (PageIndex p = first; p < first + n; ++p) page_[p].use = Use::kReserved;
  return first;
}

void Pool::release_range(PageIndex first, uint64_t n) {
  settle();
  free_range(first, n);
}

void Pool::free_range(PageIndex first, uint64_t n) {
  for (PageIndex p = first; p < first + n; ++p) page_[p].use = Use::kFree;
  insert_free(first, n);
}

}  // namespace gpushare
