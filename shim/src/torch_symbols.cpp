#include "torch_symbols.h"

#include <dlfcn.h>
#include <link.h>

#include <stdexcept>
#include <string>
#include <vector>

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

namespace {

// Of the loaded libraries, in the order in which they came.
std::vector<std::string> loaded() {
  std::vector<std::string> names;
  auto add = [](dl_phdr_info* info, size_t, void* all) {
    if (*info->dlpi_name)
      static_cast<std::vector<std::string>*>(all)->emplace_back(info->dlpi_name);
    return 0;
  };
  dl_iterate_phdr(add, &names);
  return names;
}

}  // namespace

// Not RTLD_NEXT: for a library that was loaded later than the program that looks no further than
// the library's own dependencies.
void* beyond_this(const char* symbol) {
  Dl_info own, at;
  if (!dladdr(reinterpret_cast<void*>(&beyond_this), &own)) return nullptr;
  for (const std::string& name : loaded()) {
    void* library = dlopen(name.c_str(), RTLD_LAZY | RTLD_NOLOAD);
    if (!library) continue;
    void* found = dlsym(library, symbol);
    dlclose(library);
    if (found && dladdr(found, &at) && at.dli_fbase != own.dli_fbase) return found;
  }
  return nullptr;
}

void* in_torch(const char* symbol, const char* what) { return in_library(kTorch, symbol, what); }

}  // namespace gpushare
