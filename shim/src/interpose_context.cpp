// Torch's process-wide switches per job: at::Context, the default dtype, whether warnings repeat.
//
// A job has a Context of its own, made by torch's constructor and so as in a fresh process. All of
// torch comes to its switches by at::globalContext(), so each is split, with torch's own checks.
// A job's values are kept when it has ended: threads of it may be left, and accounts are not
// reused.
#include <atomic>
#include <new>

#include "switches.h"
#include "torch_symbols.h"

namespace gpushare {
thread_local uint32_t switch_account = 0;
}

using gpushare::find_in_torch;
using gpushare::in_torch;
using gpushare::kSwitchAccounts;
using gpushare::switch_account;

// ATen/Context.h
namespace at {
class Context;
namespace {
constexpr size_t kContextBytes = 64 << 10;  // more than any torch's; 1152 bytes in 2.13
std::atomic<Context*> contexts[kSwitchAccounts] = {};

Context& process_context() {
  using Real = Context& (*)();
  static Context& process =
      reinterpret_cast<Real>(in_torch("_ZN2at13globalContextEv", "context"))();
  return process;
}

[[gnu::noinline]] Context& make_context(uint32_t account) {
  using Constructor = void (*)(void*);
  static const auto construct = reinterpret_cast<Constructor>(find_in_torch("_ZN2at7ContextC1Ev"));
  if (!construct) return process_context();
  void* memory = ::operator new(kContextBytes);
  construct(memory);
  Context* expected = nullptr;
  // Without a lock, which a fork could leave locked. Of two threads that come first at once the
  // later one's object is left unused.
  contexts[account].compare_exchange_strong(expected, static_cast<Context*>(memory),
                                            std::memory_order_acq_rel);
  return *contexts[account].load(std::memory_order_acquire);
}
}  // namespace

GS_EXPORT Context& globalContext() {
  uint32_t account = switch_account;
  if (!account) return process_context();
  if (Context* own = contexts[account].load(std::memory_order_acquire)) [[likely]]
    return *own;
  return make_context(account);
}
}  // namespace at

// c10/core/DefaultDtype.h. A TypeMeta holds one number, of scalars that of the ScalarType.
namespace caffe2 {
struct TypeMeta {
  uint16_t index;
};
}  // namespace caffe2

namespace c10 {
enum class ScalarType : int8_t;
namespace {
enum : uint8_t { kHalf = 5, kDouble = 7, kComplexHalf = 8, kComplexFloat = 9, kComplexDouble = 10 };
std::atomic<uint16_t> dtypes[kSwitchAccounts] = {};  // index + 1; 0: the process's

uint16_t own_dtype() {  // the process's account stays 0
  return dtypes[switch_account].load(std::memory_order_relaxed);
}

uint8_t complex_of(uint16_t dtype) {
  return dtype == kHalf ? kComplexHalf : dtype == kDouble ? kComplexDouble : kComplexFloat;
}
}  // namespace

GS_EXPORT void set_default_dtype(caffe2::TypeMeta dtype) {
  if (switch_account) {
    dtypes[switch_account].store(dtype.index + 1, std::memory_order_relaxed);
    return;
  }
  using Real = void (*)(caffe2::TypeMeta);
  static const Real real = reinterpret_cast<Real>(
      in_torch("_ZN3c1017set_default_dtypeEN6caffe28TypeMetaE", "default dtype"));
  real(dtype);
}

GS_EXPORT caffe2::TypeMeta get_default_dtype() {
  if (uint16_t own = own_dtype()) return {static_cast<uint16_t>(own - 1)};
  using Real = caffe2::TypeMeta (*)();
  static const Real real =
      reinterpret_cast<Real>(in_torch("_ZN3c1017get_default_dtypeEv", "default dtype"));
  return real();
}

GS_EXPORT ScalarType get_default_dtype_as_scalartype() {
  if (uint16_t own = own_dtype()) return static_cast<ScalarType>(own - 1);
  using Real = ScalarType (*)();
  static const Real real = reinterpret_cast<Real>(
      in_torch("_ZN3c1031get_default_dtype_as_scalartypeEv", "default dtype"));
  return real();
}

GS_EXPORT caffe2::TypeMeta get_default_complex_dtype() {
  if (uint16_t own = own_dtype()) return {complex_of(own - 1)};
  using Real = caffe2::TypeMeta (*)();
  static const Real real =
      reinterpret_cast<Real>(in_torch("_ZN3c1025get_default_complex_dtypeEv", "default dtype"));
  return real();
}

// c10/util/Exception.h
namespace WarningUtils {
namespace {
std::atomic<uint8_t> warn_always[kSwitchAccounts] = {};  // 1: no, 2: yes; 0: as the process
}

GS_EXPORT void set_warnAlways(bool on) {
  if (switch_account) {
    warn_always[switch_account].store(on ? 2 : 1, std::memory_order_relaxed);
    return;
  }
  using Real = void (*)(bool);
  static const Real real = reinterpret_cast<Real>(
      in_torch("_ZN3c1012WarningUtils14set_warnAlwaysEb", "repeating of warnings"));
  real(on);
}

GS_EXPORT bool get_warnAlways() {
  if (uint8_t own = warn_always[switch_account].load(std::memory_order_relaxed)) return own == 2;
  using Real = bool (*)();
  static const Real real = reinterpret_cast<Real>(
      in_torch("_ZN3c1012WarningUtils14get_warnAlwaysEv", "repeating of warnings"));
  return real();
}
}  // namespace WarningUtils
}  // namespace c10

extern "C" gs_account gs_switches_of(gs_account account) {
  uint32_t before = switch_account;
  bool known = account > 0 && account < static_cast<gs_account>(kSwitchAccounts);
  switch_account = known ? static_cast<uint32_t>(account) : GS_SHARED;
  return static_cast<gs_account>(before);
}
