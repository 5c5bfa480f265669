#include "calls.h"

#include <elf.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace gpushare {

namespace {

#if defined(__x86_64__)
constexpr uint32_t kCall = R_X86_64_JUMP_SLOT, kAddress = R_X86_64_GLOB_DAT;
#elif defined(__aarch64__)
constexpr uint32_t kCall = R_AARCH64_JUMP_SLOT, kAddress = R_AARCH64_GLOB_DAT;
#else
#error "gpushare does not know this processor's relocations"
#endif

struct Wanted {
  std::span<const char* const> callers;
  std::span<const Redirection> functions;
  int changed = 0;
};

// A library's tables; glibc has made their addresses absolute.
struct Tables {
  const ElfW(Sym) * symbols = nullptr;
  const char* names = nullptr;
  std::span<const ElfW(Rela)> calls, others;
};

Tables tables(const ElfW(Dyn) * entry) {
  Tables found;
  const ElfW(Rela)* calls = nullptr;
  const ElfW(Rela)* others = nullptr;
  size_t calls_bytes = 0, others_bytes = 0;
  for (; entry->d_tag != DT_NULL; ++entry) {
    auto at = entry->d_un.d_ptr;
    if (entry->d_tag == DT_SYMTAB) found.symbols = reinterpret_cast<const ElfW(Sym)*>(at);
    if (entry->d_tag == DT_STRTAB) found.names = reinterpret_cast<const char*>(at);
    if (entry->d_tag == DT_JMPREL) calls = reinterpret_cast<const ElfW(Rela)*>(at);
    if (entry->d_tag == DT_PLTRELSZ) calls_bytes = entry->d_un.d_val;
    if (entry->d_tag == DT_RELA) others = reinterpret_cast<const ElfW(Rela)*>(at);
    if (entry->d_tag == DT_RELASZ) others_bytes = entry->d_un.d_val;
  }
  found.calls = {calls, calls ? calls_bytes / sizeof *calls : 0};
  found.others = {others, others ? others_bytes / sizeof *others : 0};
  return found;
}

// Whether the linker has made the entry's page read-only after it had filled it.
bool is_sealed(const dl_phdr_info& library, uintptr_t at) {
  uintptr_t whole = ~(static_cast<uintptr_t>(sysconf(_SC_PAGESIZE)) - 1);  // pages, as the linker
  for (int i = 0; i < library.dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = library.dlpi_phdr[i];
    uintptr_t begin = library.dlpi_addr + part.p_vaddr, end = begin + part.p_memsz;
    if (part.p_type == PT_GNU_RELRO && at >= (begin & whole) && at < (end & whole)) return true;
  }
  return false;
}

bool put(const dl_phdr_info& library, uintptr_t at, void* function) {
  auto* entry = reinterpret_cast<void**>(at);
  if (__atomic_load_n(entry, __ATOMIC_RELAXED) == function) return false;
  uintptr_t page_bytes = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  auto* page = reinterpret_cast<void*>(at / page_bytes * page_bytes);
  bool sealed = is_sealed(library, at);
  if (sealed && mprotect(page, page_bytes, PROT_READ | PROT_WRITE) != 0) return false;
  __atomic_store_n(entry, function, __ATOMIC_RELEASE);
  if (sealed) mprotect(page, page_bytes, PROT_READ);
  return true;
}

void redirect_in(const dl_phdr_info& library, const Tables& t, Wanted& wanted) {
  for (auto relocations : {t.calls, t.others})
    for (const ElfW(Rela) & r : relocations) {
      auto type = ELF64_R_TYPE(r.r_info);
      if (type != kCall && type != kAddress) continue;
      std::string_view name = t.names + t.symbols[ELF64_R_SYM(r.r_info)].st_name;
      for (const Redirection& to : wanted.functions)
        if (name == to.name)
          wanted.changed += put(library, library.dlpi_addr + r.r_offset, to.function);
    }
}

bool is_wanted(const char* path, const Wanted& wanted) {
  const char* slash = strrchr(path, '/');
  std::string_view file = slash ? slash + 1 : path;
  return std::ranges::any_of(wanted.callers, [&](std::string_view caller) {
    return caller.empty() ? file.empty() : file.starts_with(caller);
  });
}

int visit(dl_phdr_info* library, size_t, void* data) {
  auto* wanted = static_cast<Wanted*>(data);
  if (!is_wanted(library->dlpi_name, *wanted)) return 0;
  for (int i = 0; i < library->dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = library->dlpi_phdr[i];
    if (part.p_type != PT_DYNAMIC) continue;
    auto* dynamic = reinterpret_cast<const ElfW(Dyn)*>(library->dlpi_addr + part.p_vaddr);
    Tables t = tables(dynamic);
    if (t.symbols && t.names) redirect_in(*library, t, *wanted);
  }
  return 0;
}

}  // namespace

int redirect(std::span<const char* const> callers, std::span<const Redirection> functions) {
  Wanted wanted{callers, functions};
  dl_iterate_phdr(visit, &wanted);
  return wanted.changed;
}

}  // namespace gpushare
