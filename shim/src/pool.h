// Pages and address ranges of one device: who holds which, which have physical memory behind them.
//
// Pages are not addresses: several budgets of addresses are reserved, and what is counted is pages.
// Three states of a page's address: free, reserved (part of a region, no page charged), held.
// Beside it, whether physical memory lies behind it. Invariant: backed pages <= budget, so that the
// device never holds more than the budget for us, whatever lies free.
//
// No locks: the caller (the governor) serialises. Nothing is stored inside the pool's bytes.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "device.h"

namespace gpushare {

using PageIndex = uint32_t;
constexpr PageIndex kNoPage = UINT32_MAX;
constexpr uint8_t kNobody = 255;  // no account has this number

struct PoolCounters {
  uint64_t dropped = 0;        // pages given back to the system to make room at other addresses
  uint64_t changed_owner = 0;  // physical pages that passed from one account to another
  uint64_t device_waits = 0;   // waits put on a stream because of memory freed on another
};

class Pool {
 public:
  Pool(Device* device, uint64_t page_bytes, uint64_t budget_pages, uint64_t address_pages);

  bool reserved() const { return base_ != nullptr; }
  char* base() const { return base_; }
  uint64_t page_bytes() const { return page_bytes_; }
  uint64_t pages() const { return address_pages_; }
  uint64_t backed() const { return backed_; }
  uint64_t free_ranges() const { return free_by_address_.size(); }
  const PoolCounters& counters() const { return counters_; }
  bool contains(const void* address) const {
    auto a = reinterpret_cast<uintptr_t>(address), b = reinterpret_cast<uintptr_t>(base_);
    return a >= b && a - b < address_pages_ * page_bytes_;
  }
  PageIndex index(const void* address) const {
    return static_cast<PageIndex>((static_cast<const char*>(address) - base_) / page_bytes_);
  }
  char* address(PageIndex page) const { return base_ + page * page_bytes_; }

  // A range of n free addresses, now reserved; kNoPage if the address space has no such range.
  PageIndex reserve_range(uint64_t n);
  // Reserved pages become held: physical memory is found, and `stream` waits on the device for
  // whoever used these bytes before. The caller has charged them.
  void hold(PageIndex first, uint64_t n, uint32_t account, Stream stream);
  // Held pages become reserved again; the memory stays behind them until it is needed elsewhere.
  // Returns how many of them were saved: those were held by nobody.
  uint64_t unhold(PageIndex first, uint64_t n, Stream stream);
  // Copies what the account holds elsewhere and takes its pages away; the number of pages, 0 if it
  // can't be. The addresses stay the account's, and restore() brings all back to them. The caller
  // sees to it that nobody uses them meanwhile, and uncharges and charges.
  uint64_t save(uint32_t account);
  void restore(uint32_t account);
  void release_range(PageIndex first, uint64_t n);
  // Pages that this budget has no room for go back to the system. No more than it may be held.
  void set_budget(uint64_t pages);

  // Empty if every invariant holds, else what is wrong. `held` is the sum of all charges.
  std::string check(uint64_t held) const;

 private:
  enum class Use : uint8_t { kFree, kReserved, kHeld, kSaved };
  struct Page {
    Use use = Use::kFree;
    bool backed = false;
    bool listed = false;             // in the list of backed pages that nobody holds
    uint8_t last_account = kNobody;  // not held since it was dropped
    PageIndex next = kNoPage, previous = kNoPage;
    Stream freed_on = 0;
    Event freed_at = 0;
  };

  void insert_free(PageIndex first, uint64_t n);
  void erase_free(std::map<PageIndex, uint64_t>::iterator it);
  void list_push(PageIndex page);
  void list_remove(PageIndex page);
  void make_room(uint32_t account);
  bool drop_one(uint32_t account);
  void wait_for_previous_users(PageIndex first, uint64_t n, Stream stream);

  Device* device_;
  uint64_t page_bytes_, budget_pages_, address_pages_;
  char* base_ = nullptr;
  uint64_t backed_ = 0;
  std::vector<Page> page_;
  PageIndex oldest_ = kNoPage, newest_ = kNoPage;  // backed, not held: oldest freed first
  std::map<PageIndex, uint64_t> free_by_address_;
  std::set<std::pair<uint64_t, PageIndex>> free_by_size_;
  PoolCounters counters_;
};

}  // namespace gpushare
