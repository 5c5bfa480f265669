#include "bad_frees.h"

namespace gpushare {

void BadFrees::freed(const void* address, uint64_t bytes, uint32_t owner, uint32_t freer,
                     uint64_t iteration) {
  std::lock_guard lock(mutex_);
  freed_[address] = {bytes, iteration, ++serial_, owner, freer};
  order_.emplace_back(address, serial_);
  if (order_.size() <= kRemembered) return;
  auto [oldest, serial] = order_.front();
  order_.pop_front();
  auto it = freed_.find(oldest);
  if (it != freed_.end() && it->second.serial == serial) freed_.erase(it);
}

void BadFrees::report(const void* address, uint32_t freer, BadFree inside) {
  std::lock_guard lock(mutex_);
  BadFree found = inside;
  found.address = reinterpret_cast<uint64_t>(address);
  found.freer = freer;
  found.kind = inside.bytes ? BadFreeKind::kInside : BadFreeKind::kNoBlock;
  bool may_be = !inside.bytes || inside.offset == 0;  // freed, but not given back yet
  if (auto it = freed_.find(address); may_be && it != freed_.end()) {
    const Freed& f = it->second;
    found = {found.address, f.bytes, 0, f.iteration, BadFreeKind::kTwice, freer, f.owner, f.freer};
  }
  unread_.push_back(found);
  if (unread_.size() > kUnread) unread_.pop_front();
}

bool BadFrees::next(BadFree* out) {
  std::lock_guard lock(mutex_);
  if (unread_.empty()) return false;
  *out = unread_.front();
  unread_.pop_front();
  return true;
}

}  // namespace gpushare
