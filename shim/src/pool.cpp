// Pages: who holds them. Address ranges are in ranges.cpp, contents that leave in saving.cpp, what
// was given up a moment ago in recent.cpp.
#include "pool.h"

#include <algorithm>
#include <bit>
#include <iterator>
#include <utility>

namespace gpushare {

namespace {
constexpr uint64_t kCandidates = 64;  // idle frames that are looked at
constexpr uint64_t kAtOnce = 64;      // frames given back with the lock in hand
}  // namespace

Pool::Pool(Device* device, Fences* fences, uint64_t page_bytes, uint64_t budget_pages,
           uint64_t address_pages)
    : device_(device),
      fences_(fences),
      aliases_(device->aliases()),
      page_bytes_(page_bytes),
      page_shift_(std::countr_zero(page_bytes)),
      budget_pages_(budget_pages),
      address_pages_(address_pages),
      base_(device->reserve(address_pages * page_bytes, page_bytes)),
      page_(address_pages) {
  if (base_) insert_free(0, address_pages_);
}

// Whether the frame that lies at the page was last held there.
bool Pool::current(PageIndex page) const {
  Frame f = page_[page].frame;
  return f != kNoFrame && frames_.page(f) == page;
}

// What a stream has used itself comes before what it does next.
void Pool::wait_for_last_use(Frame f, PageIndex page, uint32_t account, Stream stream,
                             DeviceWork& work) const {
  const LastUse& last = frames_.last(f);
  bool same = last.account == account && last.stream == stream && stream != Fences::kGone;
  if (same || passed(last)) return;
  work.wait_for(last.account, last.batch);
  work.unready.push_back(page);
}

// The frame that was freed longest ago of those whose last use has ended; one that another job used
// rather than one of its own, which it will want where it lies, later in the same iteration. Else
// one whose end is marked, so that the wait is short; else the oldest. Who waits on the CPU looks
// on until it has found one that needs no wait.
Frame Pool::choose_idle(uint32_t account, Stream stream) const {
  Frame own = kNoFrame, marked = kNoFrame;
  bool on_cpu = stream == Fences::kGone;
  std::array<bool, kNobody + 1> captures{};  // asked once of each account: that calls the driver
  auto can_be_waited_for = [&](const LastUse& last) {
    if (!fences_->closed(last.account, last.batch) || captures[last.account]) return false;
    captures[last.account] = on_cpu && !fences_->settles(last.account, last.batch);
    return !captures[last.account];
  };
  uint64_t looked_at = 0;
  for (Frame f = frames_.oldest(); f != kNoFrame; f = frames_.next(f)) {
    if (looked_at++ >= kCandidates && (!on_cpu || own != kNoFrame)) break;
    const LastUse& last = frames_.last(f);
    if (passed(last)) {
      if (last.account != account) return f;
      if (own == kNoFrame) own = f;
    } else if (marked == kNoFrame && can_be_waited_for(last)) {
      marked = f;
    }
  }
  if (own != kNoFrame) return own;
  return marked != kNoFrame ? marked : frames_.oldest();
}

// Takes an idle frame from where it lay, and waits for who used it there.
void Pool::use_idle(Frame f, PageIndex page, uint32_t account, Stream stream, DeviceWork& work) {
  frames_.take(f);
  PageIndex from = frames_.page(f);
  uint8_t last = frames_.last(f).account;
  if (last != account && last != kNobody) {
    ++counters_.changed_owner;
    ++counters_.received[account];
  }
  if (aliases_ || from == page)
    wait_for_last_use(f, page, account, stream, work);
  else
    leave(from);
  frames_.set_page(f, page);
}

// Without aliases: nothing lies at the page any more.
void Pool::leave(PageIndex page) {
  Page& p = page_[page];
  if (!passed(p)) fences_->finish(p.user, p.batch);
  device_->unmap(address(page));
  p.frame = kNoFrame;
  p.batch = 0;
  ++counters_.dropped;
}

void Pool::find_frame(PageIndex page, uint32_t account, Stream stream, DeviceWork& work) {
  Page& p = page_[page];
  bool unmap = occupied(p);
  if (unmap && !passed(p)) work.before_unmapping.push_back({p.user, p.batch});
  bool create = frames_.count() < budget_pages_ || frames_.idle_count() == 0;
  Frame f = create ? frames_.add() : choose_idle(account, stream);
  if (create)
    frames_.set_page(f, page);
  else
    use_idle(f, page, account, stream, work);
  p.frame = f;
  stale_ -= std::exchange(p.stale, false);
  if (!aliases_) return;
  work.mappings.push_back({page, f, create, unmap});
  ++counters_.mapped;
}

void Pool::hold(PageIndex first, uint64_t n, uint32_t account, Stream stream, DeviceWork& work) {
  if (hold_recent(first, n, account, stream)) return;
  settle();
  // First the frames that lie there already, so that none of them is taken for its neighbour.
  for (PageIndex p = first; p < first + n; ++p) {
    Page& page = page_[p];
    if (page.use == Use::kHeld || page.frame == kNoFrame || !frames_.idle(page.frame)) continue;
    use_idle(page.frame, p, account, stream, work);
    page.use = Use::kHeld;
  }
  for (PageIndex p = first; p < first + n; ++p) {
    if (page_[p].use != Use::kHeld) find_frame(p, account, stream, work);
    page_[p].use = Use::kHeld;
    page_[p].holder = static_cast<uint8_t>(account);
  }
}

PageIndex Pool::hold_range(uint64_t n, uint32_t account, Stream stream, DeviceWork& work) {
  PageIndex first = hold_recent_range(n, account, stream);
  if (first != kNoPage) return first;
  first = reserve_range(n);
  if (first != kNoPage) hold(first, n, account, stream, work);
  return first;
}

uint64_t Pool::unhold(PageIndex first, uint64_t n, Stream stream) {
  if (put_off(first, n, stream, false)) return 0;
  uint64_t saved = 0;
  uint32_t account = page_[first].holder;
  Batch batch = fences_->open(account);
  for (PageIndex p = first; p < first + n; ++p) {
    Page& page = page_[p];
    if (page.use == Use::kSaved || page.unused) --unlike_[account];
    if (page.use != Use::kSaved) {
      make_idle(p, stream, batch);
      continue;
    }
    ++saved;
    device_->forget(address(p), page_bytes_);
    page = {.use = Use::kReserved};
  }
  fences_->count(account, (n - saved) * page_bytes_);
  return saved;
}

uint64_t Pool::unhold_range(PageIndex first, uint64_t n, Stream stream) {
  if (put_off(first, n, stream, true)) return 0;
  uint64_t saved = unhold(first, n, stream);
  release_range(first, n);
  return saved;
}

bool Pool::replace(PageIndex page, Stream stream, DeviceWork& work) {
  settle();
  Page& p = page_[page];
  Frame f = choose_idle(p.holder, stream);
  if (f == kNoFrame) return false;
  frames_.release(p.frame);
  frames_.remove(p.frame);
  use_idle(f, page, p.holder, stream, work);
  p.frame = f;
  work.mappings.push_back({page, f, false, false});
  ++counters_.mapped;
  return true;
}

void Pool::mark_unused(Page& page) {
  unlike_[page.holder] += !page.unused;
  page.unused = true;
}

// The frame does not lie there, but it may still lie where it was last used; and what was to make
// room for it may still lie here.
void Pool::unplace(const DeviceWork::Mapping& m) {
  Page& page = page_[m.page];
  page.frame = kNoFrame;
  page.stale = m.unmap;
  stale_ += m.unmap;
  mark_unused(page);
  frames_.set_page(m.frame, kNoPage);
  frames_.release(m.frame);
  if (m.create) frames_.remove(m.frame);
}

void Pool::give_up(const DeviceWork& work) {
  for (const DeviceWork::Mapping& m : work.mappings) unplace(m);
  for (PageIndex p : work.unready) mark_unused(page_[p]);
}

void Pool::destroy(Frame f) {
  frames_.remove(f);
  device_->destroy(f);
}

// Some of those at whose addresses no work is under way any more, wherever they stand: one that has
// to stay keeps no other one. A stale address is not known as one of theirs: what is mapped there
// keeps its memory until unmap_stale().
void Pool::destroy_some(uint64_t n) {
  std::vector<bool> stays(frames_.numbers()), goes(frames_.numbers());
  for (const Page& p : page_)
    if (p.frame != kNoFrame && !passed(p)) stays[p.frame] = true;
  std::vector<Frame> going;
  for (Frame f = frames_.oldest(); f != kNoFrame && going.size() < n; f = frames_.next(f)) {
    if (stays[f]) continue;
    goes[f] = true;
    going.push_back(f);
  }
  if (going.empty()) return;
  for (PageIndex p = 0; p < address_pages_; ++p) {
    Frame f = page_[p].frame;
    if (f == kNoFrame || !goes[f]) continue;
    device_->unmap(address(p));
    page_[p].frame = kNoFrame;
  }
  for (Frame f : going) destroy(f);
}

void Pool::forget_stream(Stream stream) {
  settle();
  frames_.forget_stream(stream);
}

void Pool::set_budget(uint64_t pages) {
  budget_pages_ = pages;
  trim();
}

// What lies there would keep its memory though the frame is gone.
void Pool::unmap_stale() {
  for (PageIndex p = 0; p < address_pages_; ++p) {
    Page& page = page_[p];
    if (!page.stale || page.use == Use::kHeld || !passed(page)) continue;
    device_->unmap(address(p));
    page.stale = false;
    --stale_;
  }
}

void Pool::trim() {
  if (stale_) unmap_stale();
  if (frames_.count() <= budget_pages_) return;
  settle();
  if (aliases_) return destroy_some(std::min(frames_.count() - budget_pages_, kAtOnce));
  for (Frame f = frames_.oldest(); f != kNoFrame && frames_.count() > budget_pages_;) {
    Frame next = frames_.next(f);
    leave(frames_.page(f));
    destroy(f);
    f = next;
  }
}

std::string Pool::check(uint64_t held) {
  if (recent_.size() > kRecent) return "more runs of pages are put off than may be";
  settle();
  uint64_t held_pages = 0, placed = 0, free_pages = 0, in_use = 0;
  std::vector<uint64_t> saved(kNobody);
  for (PageIndex p = 0; p < address_pages_; ++p) {
    const Page& page = page_[p];
    bool is_held = page.use == Use::kHeld;
    held_pages += is_held;
    in_use += is_held && page.frame != kNoFrame;
    placed += current(p);
    free_pages += page.use == Use::kFree;
    if (is_held && page.frame != kNoFrame && (!current(p) || frames_.idle(page.frame)))
      return "a held page has no memory of its own behind it";
    if (!is_held && current(p) && !frames_.idle(page.frame)) return "a frame is held by nobody";
    if (!aliases_ && page.frame != kNoFrame && !current(p)) return "a frame lies at two addresses";
    if (page.unused) return "a page that was left is still marked";
    if (page.use == Use::kSaved) ++saved[page.holder];
  }
  if (in_use + frames_.idle_count() != frames_.count()) return "memory was lost";
  if (saved != unlike_) return "a count of pages that can't stay as they are is wrong";
  // A charge comes before the pages it is for.
  if (held_pages > held) return "more pages are held than charged";
  if (!aliases_ && placed != frames_.count()) return "the count of frames is wrong";
  if (!aliases_ && frames_.count() > budget_pages_) return "more frames exist than the budget has";
  uint64_t in_list = 0, in_ranges = 0;
  for (Frame f = frames_.oldest(); f != kNoFrame; f = frames_.next(f)) ++in_list;
  if (in_list != frames_.idle_count()) return "the list of idle frames is broken";
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
