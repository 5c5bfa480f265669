#include "torch_symbols.h"

#include <dlfcn.h>

#include <stdexcept>
#include <string>

namespace gpushare {

namespace {

constexpr const char* kTorch = "libtorch_cpu.so";

void* find(const char* library, const char* symbol) {
  void* torch = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
  return torch ? dlsym(torch, symbol) : nullptr;
}

}  // namespace

void* find_in_torch(const char* symbol) { return find(kTorch, symbol); }

void* in_library(const char* library, const char* symbol, const char* what) {
  void* found = find(library, symbol);
  if (!found) throw std::runtime_error(std::string("gpushare: torch's ") + what + " was not found");
  return found;
}

void* in_torch(const char* symbol, const char* what) { return in_library(kTorch, symbol, what); }

}  // namespace gpushare
