// A library that locks a mutex, for rests_test: what the shim calls for itself is no rest, and in
// that program both are in one file.
#include <pthread.h>

extern "C" __attribute__((visibility("default"))) int lock_in_library(pthread_mutex_t* m) {
  return pthread_mutex_lock(m);
}
