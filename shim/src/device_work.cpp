// What a device must do before pages that were held are used. No lock is in hand where it does it,
// except while another frame is looked for.
#include "device_work.h"

#include <algorithm>
#include <vector>

#include "governor.h"

namespace gpushare {

bool DeviceWork::is_for(PageIndex page) const {
  return std::ranges::find(mappings, page, &Mapping::page) != mappings.end() ||
         std::ranges::find(unready, page) != unready.end();
}

void DeviceWork::wait_for(uint32_t account, Batch batch) {
  auto known = std::ranges::find(waits, account, &Fence::account);
  if (known == waits.end())
    waits.push_back({account, batch});
  else
    known->batch = std::max(known->batch, batch);
}

void DeviceWork::merge(DeviceWork&& other) {
  mappings.insert(mappings.end(), other.mappings.begin(), other.mappings.end());
  before_unmapping.insert(before_unmapping.end(), other.before_unmapping.begin(),
                          other.before_unmapping.end());
  unready.insert(unready.end(), other.unready.begin(), other.unready.end());
  for (const Fence& f : other.waits) wait_for(f.account, f.batch);
}

DeviceWork DeviceWork::extract(PageIndex first, uint64_t n) {
  DeviceWork taken;
  auto of_these = [&](PageIndex page) { return page >= first && page < first + n; };
  std::erase_if(mappings, [&](const Mapping& m) {
    if (of_these(m.page)) taken.mappings.push_back(m);
    return of_these(m.page);
  });
  std::erase_if(unready, [&](PageIndex page) {
    if (of_these(page)) taken.unready.push_back(page);
    return of_these(page);
  });
  if (mappings.empty() && unready.empty()) *this = {};
  return taken;
}

// The caller has given up the GIL if it takes long.
void Governor::perform(DeviceWork& work, uint32_t id, Stream stream) {
  Account& a = accounts_[id];
  for (auto [account, batch] : work.before_unmapping) a.cpu_waits += fences_.finish(account, batch);
  work.before_unmapping.clear();
  std::ranges::sort(work.mappings, {}, &DeviceWork::Mapping::page);
  while (!work.mappings.empty()) a.mappings += map_some(work, stream);
  // A wait in a capture would become part of the graph, and a graph can run on any stream.
  bool on_cpu = stream == Fences::kGone;
  for (auto [account, batch] : work.waits)
    if (on_cpu)
      a.cpu_waits += fences_.finish(account, batch);
    else
      a.device_waits += fences_.wait(stream, account, batch, id);
  work.waits.clear();
  work.unready.clear();
}

// The frame of a mapping is made ready, or replaced by an idle one if the device has no memory
// left: somebody outside of the pool has taken it.
void Governor::make_ready(DeviceWork& work, size_t i, Stream stream) {
  DeviceWork::Mapping& m = work.mappings[i];
  if (m.unmap) device_->unmap(pool_.address(m.page));
  m.unmap = false;
  if (!m.create || device_->create(m.frame)) {
    m.create = false;
    return;
  }
  DeviceWork other;
  {
    Lock lock(mutex_);
    if (!pool_.replace(m.page, stream, other))
      throw OutOfMemory(
          "gpushare: out of memory: the device has less memory left than the budget says; "
          "something "
          "outside of this run uses it. Lower --budget, or end the other program.");
  }
  m = other.mappings[0];
  other.mappings.clear();
  work.merge(std::move(other));
}

// Neighbours in one call, as long as that goes well; they are off the list then. How many.
uint64_t Governor::map_some(DeviceWork& work, Stream stream) {
  std::vector<Frame> frames;
  PageIndex first = work.mappings[0].page;
  for (size_t i = 0; i < work.mappings.size() && work.mappings[i].page == first + i; ++i) {
    make_ready(work, i, stream);
    frames.push_back(work.mappings[i].frame);
  }
  device_->map(pool_.address(first), frames);
  work.mappings.erase(work.mappings.begin(),
                      work.mappings.begin() + static_cast<ptrdiff_t>(frames.size()));
  return frames.size();
}

}  // namespace gpushare
