// What the pool asks of a device. `devices/` has the host and CUDA; the tests bring fakes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>

namespace gpushare {

using Stream = uint64_t;
using Event = uint64_t;  // one that record() made; 0 has always passed
using Frame = uint32_t;  // a physical page; the pool gives the numbers
constexpr Frame kNoFrame = UINT32_MAX;

// What a driver call answered, in words.
class DeviceFailure : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

// It has no memory left for what the call needs.
class DeviceFull : public DeviceFailure {
  using DeviceFailure::DeviceFailure;
};

class Device {
 public:
  virtual ~Device() = default;

  // Reserves addresses for pages of `page_bytes`, aligned to it; null if it can't.
  virtual char* reserve(size_t bytes, size_t page_bytes) = 0;

  // Whether a frame may lie at several addresses at once, so that it can pass from one to another
  // while work on the first is still under way.
  virtual bool aliases() const { return false; }
  // Makes a frame; false if the device has no memory left for it.
  virtual bool create(Frame) { return true; }
  // Gives a frame back to the system. It lies nowhere any more.
  virtual void destroy(Frame) {}
  // Puts frames behind as many pages from `address` on, of which none has one.
  virtual void map(char*, std::span<const Frame>) {}
  // Takes the frame away that lies behind a page. Nothing on the device uses the address any more.
  // Without aliases the contents are lost, and the memory goes back to the system. Where this fails
  // the next map() there says so.
  virtual void unmap(char* address) = 0;

  // Whether work that was issued may still be to come. If not, the rest is never called.
  virtual bool asynchronous() const { return false; }
  // A stream that does not synchronise with the legacy one; the lower, the more urgent, and 0 is
  // the driver's default. Throws DeviceFailure.
  virtual Stream make_stream(int) { return 0; }
  // Marks everything issued on the stream so far.
  virtual Event record(Stream) { return 0; }
  // Whether what is issued on the stream goes into a graph instead; nothing can be recorded then.
  virtual bool capturing(Stream) { return false; }
  // That capture fails, as where CUDA is asked to wait for its stream; no other one does.
  virtual void break_capture(Stream) {}
  // The same, and it is over, if the calling thread began it: the stream is as it was before.
  virtual void abandon_capture(Stream) {}
  // Whether the event became part of a capture that is over: it never passes.
  virtual bool spoilt(Event) { return false; }
  virtual void forget_event(Event) {}
  virtual bool passed(Event) { return true; }
  // Waits on the CPU until the event has passed. It and make_wait throw DeviceFailure.
  virtual void finish(Event) {}
  // Makes later work on `waiter` wait on the device for the event; the CPU does not wait.
  virtual void make_wait(Stream, Event) {}

  // Contents that leave for a while, of a page that nobody uses meanwhile. can_copy_out says
  // whether there is room elsewhere for so many bytes, as far as is known before; copy_out writes a
  // copy there; false if it can't. take_away then unmaps the page, and a stray use of the address
  // is a fault, not a wrong number. bring_back puts the copy into the frame that now lies there;
  // forget drops the copy, and the address is usable again.
  virtual bool can_copy_out(size_t) { return true; }
  virtual bool copy_out(char*, size_t) { return false; }
  virtual void take_away(char*, size_t) {}
  virtual bool bring_back(char*, size_t) { return false; }
  virtual void forget(char*, size_t) {}
};

}  // namespace gpushare
