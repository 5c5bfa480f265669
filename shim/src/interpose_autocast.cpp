// The casts of weights that torch.autocast keeps, per job.
//
// Torch has one table of them for the process. It holds the table's mutex while it casts, and a job
// may have to wait there, for its door or for memory; each other job that casts would wait for that
// mutex, with nobody left to resolve it. And a job that leaves autocast empties the table, in the
// middle of another's forward pass: a weight that is used twice would be cast twice, and its
// gradient summed in other bits.
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <unordered_map>
#include <utility>

#include "runtime.h"
#include "switches.h"
#include "torch_symbols.h"

using gpushare::find_in_torch;
using gpushare::in_torch;
using gpushare::kSwitchAccounts;
using gpushare::switch_account;

namespace c10 {
enum class DeviceType : int8_t;
enum class ScalarType : int8_t;
}  // namespace c10

// ATen/core/TensorBody.h
namespace at {
// One pointer to what torch counts. Nothing is counted here: a value hands its count on, and what
// is kept is a handle of torch's. Its destructor says how it is returned.
class Tensor {
 public:
  explicit Tensor(void* impl) : impl(impl) {}
  Tensor(Tensor&& other) noexcept : impl(other.impl) {}
  ~Tensor() {}

  void* impl;
};

namespace autocast {
namespace {

constexpr int32_t kFloat = 6;

// Torch's functions for all that is asked here; without headers of torch, whose classes differ
// between its versions.
struct Torch {
  template <typename Function>
  static Function* find(const char* symbol) {
    return reinterpret_cast<Function*>(find_in_torch(symbol));
  }

  // ATen/autocast_mode.h
  Tensor (*cast)(c10::ScalarType, const Tensor&, c10::DeviceType) =
      reinterpret_cast<decltype(cast)>(
          in_torch("_ZN2at8autocast11cached_castEN3c1010ScalarTypeERKNS_6TensorENS1_10DeviceTypeE",
                   "casts"));
  void (*clear)() = reinterpret_cast<decltype(clear)>(in_torch("_ZN2at8autocast11clear_cacheEv",
                                                               "casts"));
  c10::ScalarType (*dtype_on)(c10::DeviceType) = find<c10::ScalarType(c10::DeviceType)>(
      "_ZN2at8autocast18get_autocast_dtypeEN3c1010DeviceTypeE");
  bool (*keeps)() = find<bool()>("_ZN2at8autocast25is_autocast_cache_enabledEv");
  void (*set_keeps)(bool) = find<void(bool)>("_ZN2at8autocast26set_autocast_cache_enabledEb");
  // ATen/core/TensorBase.h, c10/core/TensorImpl.h, ATen/CachedTensorUtils.h
  bool (*is_leaf)(const Tensor*) = find<bool(const Tensor*)>("_ZNK2at10TensorBase7is_leafEv");
  bool (*is_view)(const Tensor*) = find<bool(const Tensor*)>("_ZNK2at10TensorBase7is_viewEv");
  bool (*requires_grad)(const void*) =
      find<bool(const void*)>("_ZNK3c1010TensorImpl13requires_gradEv");
  bool (*is_of_graph)(const Tensor&) =
      find<bool(const Tensor&)>("_ZN2at7caching16is_cached_tensorERKNS_6TensorE");
  // torch/csrc/inductor/aoti_torch/c/shim.h; 0 is success
  int32_t (*dtype)(const Tensor*,
                   int32_t*) = find<int32_t(const Tensor*, int32_t*)>("aoti_torch_get_dtype");
  int32_t (*copy)(const Tensor*, Tensor**) =
      find<int32_t(const Tensor*, Tensor**)>("aoti_torch_new_tensor_handle");
  int32_t (*remove)(Tensor*) = find<int32_t(Tensor*)>("aoti_torch_delete_tensor_object");

  bool complete = dtype_on && keeps && set_keeps && is_leaf && is_view && requires_grad &&
                  is_of_graph && dtype && copy && remove;
};

const Torch& torch() {
  static const Torch found;
  return found;
}

struct Remove {
  void operator()(Tensor* handle) const { torch().remove(handle); }
};
using Handle = std::unique_ptr<Tensor, Remove>;

Handle copy(const Tensor& tensor) {
  Tensor* made = nullptr;
  if (torch().copy(&tensor, &made) != 0) throw std::bad_alloc();
  return Handle(made);
}

Tensor value_of(Handle handle) {
  Tensor value(handle->impl);
  ::operator delete(handle.release());  // and not what it counts
  return value;
}

// Torch's table keeps a weak reference to each weight; this one a strong one. A cast in a graph
// keeps its weight anyway.
class Casts {
 public:
  // Null if there is none.
  Handle find(const Tensor& weight) {
    std::lock_guard lock(mutex_);
    auto it = kept_.find(weight.impl);
    return it == kept_.end() ? nullptr : copy(*it->second.cast);
  }

  // What the job is to use: of threads that cast one weight at once, the first one's.
  Handle keep(const Tensor& weight, Handle cast) {
    Kept fresh{copy(weight), copy(*cast)};  // given up without the lock, if another came first
    std::lock_guard lock(mutex_);
    auto [it, first] = kept_.try_emplace(weight.impl, std::move(fresh));
    return first ? std::move(cast) : copy(*it->second.cast);
  }

  void clear() {
    std::unordered_map<void*, Kept> dropped;
    std::lock_guard lock(mutex_);
    kept_.swap(dropped);
  }

 private:
  struct Kept {
    Handle weight, cast;
  };
  std::mutex mutex_;
  std::unordered_map<void*, Kept> kept_;
};

std::atomic<Casts*> tables[kSwitchAccounts] = {};

Casts& casts_of(uint32_t account) {
  if (Casts* own = tables[account].load(std::memory_order_acquire)) return *own;
  auto made = std::make_unique<Casts>();
  Casts* expected = nullptr;
  if (tables[account].compare_exchange_strong(expected, made.get(), std::memory_order_acq_rel))
    return *made.release();
  return *expected;
}

// Torch's own conditions. That autocast is for the tensor's device at all is left to torch.
bool is_kept(const Torch& t, c10::ScalarType to, const Tensor& arg, c10::DeviceType device) {
  int32_t dtype = 0;
  return t.keeps() && to == t.dtype_on(device) && t.dtype(&arg, &dtype) == 0 && dtype == kFloat &&
         t.requires_grad(arg.impl) && t.is_leaf(&arg) && !t.is_view(&arg) && !t.is_of_graph(arg);
}

class WithoutTable {
 public:
  WithoutTable() { torch().set_keeps(false); }
  ~WithoutTable() { torch().set_keeps(true); }
  WithoutTable(const WithoutTable&) = delete;
  WithoutTable& operator=(const WithoutTable&) = delete;
};

class NoWait {
 public:
  NoWait() { ++gpushare::thread_state.no_wait; }
  ~NoWait() { --gpushare::thread_state.no_wait; }
  NoWait(const NoWait&) = delete;
  NoWait& operator=(const NoWait&) = delete;
};

}  // namespace

// ATen/autocast_mode.h
GS_EXPORT Tensor cached_cast(c10::ScalarType to, const Tensor& arg, c10::DeviceType device) {
  const Torch& t = torch();
  uint32_t account = switch_account;
  if (!account) return t.cast(to, arg, device);
  if (!t.complete) {  // its mutex may be held meanwhile
    NoWait no_wait;
    return t.cast(to, arg, device);
  }
  if (!is_kept(t, to, arg, device)) return t.cast(to, arg, device);
  Casts& casts = casts_of(account);
  if (Handle kept = casts.find(arg)) return value_of(std::move(kept));
  WithoutTable without_table;
  Handle cast(new Tensor(t.cast(to, arg, device)));
  bool other_device = cast->impl == arg.impl;  // nothing was cast
  return value_of(other_device ? std::move(cast) : casts.keep(arg, std::move(cast)));
}

GS_EXPORT void clear_cache() {
  uint32_t account = switch_account;
  if (!account || !torch().complete) return torch().clear();
  if (Casts* own = tables[account].load(std::memory_order_acquire)) own->clear();
}

}  // namespace autocast
}  // namespace at
