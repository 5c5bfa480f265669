// Pages and address ranges of one device: who holds which, which have physical memory behind them.
//
// Pages are not addresses: several budgets of addresses are reserved, and what is counted is pages.
// Three states of a page's address: free, reserved (part of a region, no page charged), held. A
// held page has a frame, and no more frames exist than the budget has pages.
//
// A frame stays where it was held until it is needed elsewhere. Where the device can alias, it may
// then lie at both addresses, since work at the first may still be under way, and it may be back
// there without another mapping; a page is mapped anew only if its frame is held elsewhere. Where
// it can't, the contents of the first address are dropped.
//
// Pages that were given up a moment ago stay as they were held until anybody but their holder wants
// something of the pool: most memory that a job frees it takes again, at the same addresses, and
// then neither costs anything by the page (recent.cpp).
//
// No locks: the caller (the governor) serialises. Driver calls that a device with aliases needs are
// not made here but noted as work, which the caller does when it has no lock any more. Nothing is
// stored inside the pool's bytes.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "device.h"
#include "device_work.h"
#include "fences.h"
#include "frames.h"

namespace gpushare {

struct PoolCounters {
  uint64_t dropped = 0;        // frames taken from one address for another
  uint64_t changed_owner = 0;  // frames that passed from one account to another
  std::vector<uint64_t> received = std::vector<uint64_t>(kNobody);  // the same, by who got them
  uint64_t mapped = 0;  // frames put behind another address
};

class Pool {
 public:
  Pool(Device* device, Fences* fences, uint64_t page_bytes, uint64_t budget_pages,
       uint64_t address_pages);

  bool reserved() const { return base_ != nullptr; }
  char* base() const { return base_; }
  uint64_t page_bytes() const { return page_bytes_; }
  uint64_t pages() const { return address_pages_; }
  uint64_t backed() const { return frames_.count(); }
  uint64_t free_ranges() {
    settle();
    return free_by_address_.size();
  }
  // Of pages that were given up and are still as they were held.
  size_t recent_runs() const { return recent_.size(); }
  const PoolCounters& counters() const { return counters_; }
  bool contains(const void* address) const {
    auto a = reinterpret_cast<uintptr_t>(address), b = reinterpret_cast<uintptr_t>(base_);
    return a >= b && a - b < address_pages_ * page_bytes_;
  }
  PageIndex index(const void* address) const {
    return static_cast<PageIndex>((static_cast<const char*>(address) - base_) >> page_shift_);
  }
  char* address(PageIndex page) const { return base_ + page * page_bytes_; }

  // A range of n free addresses, now reserved; kNoPage if the address space has no such range.
  PageIndex reserve_range(uint64_t n);
  void release_range(PageIndex first, uint64_t n);
  // reserve_range and hold; unhold and release_range.
  PageIndex hold_range(uint64_t n, uint32_t account, Stream stream, DeviceWork& work);
  uint64_t unhold_range(PageIndex first, uint64_t n, Stream stream);
  // Reserved pages become held by what is on `stream`; the caller has charged them. They may be
  // used when the work has been done. Pages of the range that the account holds already stay as
  // they are.
  void hold(PageIndex first, uint64_t n, uint32_t account, Stream stream, DeviceWork& work);
  // Held pages become reserved again. Returns how many of them were saved: those were held by
  // nobody.
  uint64_t unhold(PageIndex first, uint64_t n, Stream stream);
  // Whether to hold one of these pages now would make the CPU wait: its frame is held elsewhere,
  // and what used the address before may not have ended.
  bool stalls(PageIndex first, uint64_t n);
  // A frame that could not be made does not exist. Finds an idle one for the page instead; false if
  // there is none.
  bool replace(PageIndex page, Stream stream, DeviceWork& work);

  // Pages whose work was not done, in part or at all, are left by their holder: nobody has used
  // them. unhold() of them follows, and whoever gets their memory waits for who used it before.
  void give_up(const DeviceWork& work);

  // The stream is gone: what it has used is nobody's own any more.
  void forget_stream(Stream stream);

  // Copies what the account holds elsewhere and takes its pages away; the number of pages, 0 if it
  // can't be. The addresses stay the account's, and restore() brings all back to them. The caller
  // sees to it that nobody uses them meanwhile, and uncharges and charges.
  uint64_t save(uint32_t account);
  // Whether there is memory for so many pages to come back to. What an account has freed that
  // captures a graph is none: nobody can wait for its last use.
  bool can_restore(uint64_t n);
  void restore(uint32_t account);
  // Pages that this budget has no room for go back to the system: at once, or where work is still
  // under way by later calls of trim(). No more than it may be held.
  void set_budget(uint64_t pages);
  void trim();

  // Empty if every invariant holds, else what is wrong. `held` is the sum of all charges.
  std::string check(uint64_t held);

 private:
  enum class Use : uint8_t { kFree, kReserved, kHeld, kSaved };
  struct Page {
    Frame frame = kNoFrame;  // that lies there; another page may hold it
    Use use = Use::kFree;
    uint8_t holder = kNobody;  // the account, or that held it last
    uint8_t user = kNobody;    // the account that used the address last
    bool stale = false;        // there lies another frame, or one that does not exist any more
    bool unused = false;       // its holder leaves it, and has not used it
    Batch batch = 0;           // in which it was freed; 0: nobody uses the address any more
  };

  // Pages that one holder has given up at once and that are still as it held them.
  struct Run {
    PageIndex first;
    uint64_t n;
    uint32_t account;
    bool released;  // their addresses too
    Stream stream;
    Batch batch;
  };
  static constexpr size_t kRecent = 32;

  bool make_frame();
  bool put_off(PageIndex first, uint64_t n, Stream stream, bool released);
  static bool lies_in(const Run& run, PageIndex first, uint64_t n) {
    return run.first <= first && first + n <= run.first + run.n;
  }
  bool hold_recent(PageIndex first, uint64_t n, uint32_t account, Stream stream);
  PageIndex hold_recent_range(uint64_t n, uint32_t account, Stream stream);
  void settle();
  void make_idle(PageIndex page, Stream stream, Batch batch);
  void free_range(PageIndex first, uint64_t n);
  void insert_free(PageIndex first, uint64_t n);
  void erase_free(std::map<PageIndex, uint64_t>::iterator it);
  uint64_t cost(PageIndex first, uint64_t n);
  PageIndex find_quiet(PageIndex begin, uint64_t pages, uint64_t n) const;
  bool current(PageIndex page) const;
  static bool occupied(const Page& p) { return p.frame != kNoFrame || p.stale; }
  bool passed(const Page& p) const { return !p.batch || fences_->passed(p.user, p.batch); }
  bool passed(const LastUse& u) const { return !u.batch || fences_->passed(u.account, u.batch); }
  void wait_for_last_use(Frame f, PageIndex page, uint32_t account, Stream stream,
                         DeviceWork& work) const;
  Frame choose_idle(uint32_t account, Stream stream) const;
  void find_frame(PageIndex page, uint32_t account, Stream stream, DeviceWork& work);
  void use_idle(Frame f, PageIndex page, uint32_t account, Stream stream, DeviceWork& work);
  void leave(PageIndex page);
  void unplace(const DeviceWork::Mapping& mapping);
  void mark_unused(Page& page);
  void unmap_stale();
  void destroy(Frame f);
  void destroy_some(uint64_t n);
  void do_now(const DeviceWork& work);

  Device* device_;
  Fences* fences_;
  bool aliases_;
  uint64_t page_bytes_;  // a power of two
  int page_shift_;
  uint64_t budget_pages_, address_pages_;
  char* base_ = nullptr;
  std::vector<Page> page_;
  Frames frames_;
  std::map<PageIndex, uint64_t> free_by_address_;
  std::set<std::pair<uint64_t, PageIndex>> free_by_size_;
  std::vector<Run> recent_;  // the latest last
  // Held pages of each account that can't stay as they are: saved, or given up unused.
  std::vector<uint64_t> unlike_ = std::vector<uint64_t>(kNobody);
  PoolCounters counters_;
  uint64_t looks_ = 0, stale_ = 0;
};

}  // namespace gpushare
