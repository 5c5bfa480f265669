// What the pool asks of a device. Host and CUDA implement it; the tests bring an asynchronous fake.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gpushare {

using Stream = uint64_t;
using Event = uint64_t;  // a position on a stream; 0 has always passed

class Device {
 public:
  virtual ~Device() = default;
  // Reserves address space that is aligned to `alignment` and has no pages yet; null if it can't.
  virtual char* reserve(size_t bytes, size_t alignment) = 0;
  // Gives the physical pages back to the system; the contents are lost, the addresses stay ours.
  virtual void drop(char* address, size_t bytes) = 0;
  // Marks everything issued on the stream so far. Called when memory is freed, never when taken.
  virtual Event record(Stream stream) = 0;
  virtual bool passed(Stream stream, Event event) = 0;
  // Waits on the CPU until the event has passed. Only for giving pages back to the system, and only
  // when every idle page is still in use by the device.
  virtual void finish(Stream stream, Event event) = 0;
  // Makes later work on `waiter` wait on the device for the event; the CPU does not wait.
  virtual void make_wait(Stream waiter, Stream stream, Event event) = 0;

  // Contents that leave for a while, of addresses that nobody uses meanwhile. copy_out writes a
  // copy elsewhere; false if it can't. take_away then gives the pages back, and a stray use of the
  // addresses is a fault, not a wrong number. bring_back needs pages again and puts the copy there;
  // forget needs none: the addresses are usable, the contents are lost.
  virtual bool copy_out(char*, size_t) { return false; }
  virtual void take_away(char*, size_t) {}
  virtual bool bring_back(char*, size_t) { return false; }
  virtual void forget(char*, size_t) {}
};

}  // namespace gpushare
