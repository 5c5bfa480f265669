// The little of CUDA's driver interface that the checks need, declared here and found at run time,
// so that no CUDA header and no library is needed to build.
#pragma once
#include <dlfcn.h>

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>

namespace driver {
using Stream = void*;
using Event = void*;
using Pointer = uint64_t;
using Handle = uint64_t;

struct Location {
  int type = 1;  // a device
  int id = 0;
};
struct AllocationProperties {
  int type = 1;  // pinned
  int handle_types = 0;
  Location location;
  void* meta_data = nullptr;
  unsigned char flags[8] = {};
};
struct Access {
  Location location;
  int flags = 3;  // read and write
};

inline void* symbol(const char* name) {
  static void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
  void* found = library ? dlsym(library, name) : nullptr;
  if (!found) throw std::runtime_error(std::string(name) + " was not found in libcuda.so.1");
  return found;
}

// Calls a function of the driver by name; its result is the driver's error code, 0 for success.
template <typename... Arguments>
int call(const char* name, Arguments... arguments) {
  return reinterpret_cast<int (*)(Arguments...)>(symbol(name))(arguments...);
}

// As call(), for loops that are timed: look the function up once.
template <typename... Arguments>
auto function(const char* name) {
  return reinterpret_cast<int (*)(Arguments...)>(symbol(name));
}

// torch's context, made current in this thread.
inline int use_context() {
  static void* context = nullptr;
  if (!context) {
    if (int e = call("cuInit", 0u)) return e;
    if (int e = call("cuDevicePrimaryCtxRetain", &context, 0)) return e;
  }
  return call("cuCtxSetCurrent", context);
}
}  // namespace driver
