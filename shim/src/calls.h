// Calls that loaded libraries make through the dynamic linker's tables, taken over library by
// library. What this library defines itself is found only by what is loaded after it
// (interpose.cpp); the interpreter was there before.
#pragma once

#include <span>

namespace gpushare {

struct Redirection {
  const char* name;
  void* function;
};

// Has each of `callers`, begins of file names ("": the program), call these functions instead of
// those of the same name. Returns how many entries of tables it changed: none that it changed
// before, none in libraries that are not loaded yet.
int redirect(std::span<const char* const> callers, std::span<const Redirection> functions);

}  // namespace gpushare
