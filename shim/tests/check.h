// A check that also holds in optimised builds, and says where it failed.
#pragma once

#include <cstdio>
#include <cstdlib>

#define CHECK(condition)                                                      \
  do {                                                                        \
    if (!(condition)) {                                                       \
      fprintf(stderr, "%s:%d: failed: %s\n", __FILE__, __LINE__, #condition); \
      abort();                                                                \
    }                                                                         \
  } while (0)

#define CHECK_EMPTY(text)                                                 \
  do {                                                                    \
    auto wrong_ = (text);                                                 \
    if (!wrong_.empty()) {                                                \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, wrong_.c_str()); \
      abort();                                                            \
    }                                                                     \
  } while (0)
