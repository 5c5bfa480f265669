// Symbols of torch that this library stands before.
#pragma once

namespace gpushare {

// What the symbol is in torch itself; null if torch has none of that name.
void* find_in_torch(const char* symbol);
// The same; throws with `what` if there is none.
void* in_torch(const char* symbol, const char* what);
// In one of torch's libraries, which is loaded.
void* in_library(const char* library, const char* symbol, const char* what);
// In the first library that has it, of those that are loaded, but for this one; null if none has.
void* beyond_this(const char* symbol);

}  // namespace gpushare
