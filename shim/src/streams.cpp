#include "streams.h"

#include <algorithm>

#include "runtime.h"

namespace gpushare {

std::pair<Stream, bool> SideStreams::next(uint32_t account, int priority) {
  std::lock_guard lock(mutex_);
  priority = std::clamp(priority, kMostUrgent, 0);
  Turn& turn = turns_[{account, priority}];
  if (turn.streams.size() < kOfAPriority) {
    turn.streams.push_back(device_->make_stream(priority));
    return {turn.streams.back(), true};
  }
  return {turn.streams[turn.next++ % kOfAPriority], false};
}

Stream Runtime::side_stream(uint32_t account, int priority) {
  auto [stream, made] = side_streams_.next(account, priority);
  if (made) begin_stream(account, stream);
  return stream;
}

bool Runtime::synchronize(uint32_t account) {
  if (!governor_.asynchronous()) return true;
  std::vector<Stream> streams = governor_.fences().streams(account);
  auto captured = [&](Stream s) { return s && pool_device_->capturing(s); };
  if (auto found = std::ranges::find_if(streams, captured); found != streams.end()) {
    pool_device_->break_capture(*found);
    return false;
  }
  // Events, not the streams themselves: what other threads of the job issue meanwhile is not waited
  // for, and an event of a blocking stream comes after what lies on the legacy stream.
  std::vector<Event> events;
  for (Stream stream : streams)
    if (stream) events.push_back(pool_device_->record(stream));
  // One may have begun since, in another thread of the job: what was recorded is a part of it.
  bool too_late = std::ranges::any_of(streams, captured);
  std::string wrong;
  for (Event event : events) {
    try {
      pool_device_->finish(event);
    } catch (const DeviceFailure& e) {
      wrong = e.what();
    }
    pool_device_->forget_event(event);
  }
  if (too_late) return false;
  if (!wrong.empty()) throw DeviceFailure(wrong);
  return true;
}

}  // namespace gpushare
