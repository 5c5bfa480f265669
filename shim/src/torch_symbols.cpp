#include "torch_symbols.h"

#include <dlfcn.h>

#include <stdexcept>
#include <string>

namespace gpushare {

void* find_in_torch(const char* symbol) {
  void* torch = dlopen("libtorch_cpu.so", RTLD_LAZY | RTLD_NOLOAD);
  return torch ? dlsym(torch, symbol) : nullptr;
}

void* in_torch(const char* symbol, const char* what) {
  void* found = find_in_torch(symbol);
  if (!found) throw std::runtime_error(std::string("gpushare: torch's ") + what + " was not found");
  return found;
}

}  // namespace gpushare
