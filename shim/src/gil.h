// Releasing the interpreter lock around a wait, without linking Python: the symbols are looked up.
#pragma once

namespace gpushare {

bool holds_gil();  // this thread, where there is a Python

class GilReleased {
 public:
  GilReleased();  // releases the GIL if this thread holds it
  ~GilReleased();
  GilReleased(const GilReleased&) = delete;
  GilReleased& operator=(const GilReleased&) = delete;

 private:
  void* state_ = nullptr;
};

}  // namespace gpushare
