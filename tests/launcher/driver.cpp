// Stands in for libcuda.so.1: one function after the other may fail, as the environment says.
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#define DRIVER extern "C" __attribute__((visibility("default"))) int

static int told(const char* call) {
  const char* failing = getenv("DRIVER_FAILS");
  return failing && !strcmp(failing, call) ? atoi(getenv("DRIVER_RESULT")) : 0;
}

DRIVER cuInit(unsigned) {
  if (getenv("DRIVER_HANGS")) sleep(30);
  return told("cuInit");
}
DRIVER cuDeviceGetCount(int* count) {
  const char* n = getenv("DRIVER_COUNT");
  *count = n ? atoi(n) : 1;
  return 0;
}
DRIVER cuDeviceGet(int* device, int index) {
  *device = index;
  return 0;
}
DRIVER cuDeviceGetName(char* name, int, int) {
  strcpy(name, "a GPU on paper");
  return 0;
}
DRIVER cuDeviceGetAttribute(int* value, int attribute, int) {
  *value = attribute == 75 ? 8 : attribute == 76 ? 6 : -1;
  return 0;
}
DRIVER cuDevicePrimaryCtxRetain(void** context, int) {
  *context = &context;
  return told("cuDevicePrimaryCtxRetain");
}
DRIVER cuCtxSetCurrent(void*) { return 0; }
DRIVER cuMemGetInfo_v2(size_t* free, size_t* total) {
  *free = size_t{6} << 30;
  *total = size_t{8} << 30;
  return 0;
}
DRIVER cuGetErrorString(int result, const char** text) {
  *text = result == 100 ? "no CUDA-capable device is detected" : "out of memory";
  return 0;
}
