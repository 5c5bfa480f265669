// Pages that were given up a moment ago. They keep their frames and addresses, and their state is
// that of held ones, though nobody is charged for them. Who gave them up may hold them again, on
// the stream that used them last: it has nothing to wait for. Anybody else, and whatever looks at
// pages, settles them first.
#include <algorithm>
#include <utility>

#include "pool.h"

namespace gpushare {

// False where it must be done at once: contents of these pages may be elsewhere, or they were never
// used.
bool Pool::put_off(PageIndex first, uint64_t n, Stream stream, bool released) {
  uint32_t account = page_[first].holder;
  if (unlike_[account]) return false;
  if (recent_.size() >= kRecent) settle();
  recent_.push_back({first, n, account, released, stream, fences_->open(account)});
  fences_->count(account, n * page_bytes_);
  return true;
}

// The pages before them and behind them stay given up.
bool Pool::hold_recent(PageIndex first, uint64_t n, uint32_t account, Stream stream) {
  if (stream == Fences::kGone) return false;
  auto found = std::ranges::find_if(recent_.rbegin(), recent_.rend(), [&](const Run& r) {
    return lies_in(r, first, n) && r.account == account && r.stream == stream;
  });
  if (found == recent_.rend()) return false;
  fences_->uncount(account, found->batch, n * page_bytes_);
  auto end = static_cast<PageIndex>(first + n);
  Run before = *found, behind = *found;
  before.n = first - before.first;
  behind.n = behind.first + behind.n - end;
  behind.first = end;
  auto at = recent_.erase(std::next(found).base());
  if (behind.n) at = recent_.insert(at, behind);
  if (before.n) recent_.insert(at, before);
  if (recent_.size() > kRecent) settle();
  return true;
}

PageIndex Pool::hold_recent_range(uint64_t n, uint32_t account, Stream stream) {
  if (stream == Fences::kGone) return kNoPage;
  auto found = std::ranges::find_if(recent_.rbegin(), recent_.rend(), [&](const Run& r) {
    return r.released && r.n == n && r.account == account && r.stream == stream;
  });
  if (found == recent_.rend()) return kNoPage;
  fences_->uncount(account, found->batch, n * page_bytes_);
  PageIndex first = found->first;
  recent_.erase(std::next(found).base());
  return first;
}

// In the order in which they were given up: so frames become idle.
void Pool::settle() {
  for (const Run& r : recent_) {
    for (PageIndex p = r.first; p < r.first + r.n; ++p) make_idle(p, r.stream, r.batch);
    if (r.released) free_range(r.first, r.n);
  }
  recent_.clear();
}

void Pool::make_idle(PageIndex p, Stream stream, Batch batch) {
  Page& page = page_[p];
  page.use = Use::kReserved;
  bool unused = std::exchange(page.unused, false);
  if (!unused) page.user = page.holder, page.batch = batch;
  if (page.frame == kNoFrame) return;
  frames_.release(page.frame);
  if (!unused) frames_.last(page.frame) = {page.holder, stream, batch};
}

}  // namespace gpushare
