// The guard of C++ statics: whoever waits for another thread's initializer gives up the GIL.
//
// Torch imports and calls Python in initializers of statics. In a script's process one thread does;
// here several jobs can come to the same static. The first may lose the GIL in it, and a second
// that waits for it with the GIL in hand would wait for ever. The same holds when the first waits
// for memory there.
#include <dlfcn.h>

#include <cstdint>

#include "../include/gpushare.h"
#include "gil.h"

// ThreadSanitizer has its own, from which it learns that the initializer came before.
#ifndef __SANITIZE_THREAD__

namespace {
using Acquire = int (*)(uint64_t*);
Acquire real_acquire = nullptr;  // without a guard of its own; all threads would store the same

// Itanium C++ ABI 3.3.3; libstdc++ keeps "in progress" in the second byte.
bool in_progress(uint64_t* guard) {
  return __atomic_load_n(reinterpret_cast<unsigned char*>(guard) + 1, __ATOMIC_ACQUIRE) != 0;
}
}  // namespace

extern "C" GS_EXPORT int __cxa_guard_acquire(uint64_t* guard) {
  Acquire real = __atomic_load_n(&real_acquire, __ATOMIC_RELAXED);
  if (!real) {
    real = reinterpret_cast<Acquire>(dlsym(RTLD_NEXT, "__cxa_guard_acquire"));
    __atomic_store_n(&real_acquire, real, __ATOMIC_RELAXED);
  }
  if (!in_progress(guard)) return real(guard);
  gpushare::GilReleased released;
  return real(guard);
}

#endif
