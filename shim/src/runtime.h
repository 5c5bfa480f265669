// The one object behind the C API: pool, governor and the heaps of every account. Made by gs_start,
// never destroyed: tensors outlive everything at exit.
#pragma once

#include <map>
#include <memory>
#include <mutex>

#include "../include/gpushare.h"
#include "governor.h"
#include "heap.h"

namespace gpushare {

class Runtime {
 public:
  Runtime(const gs_config& config, Device* device, Telemetry* telemetry);

  Governor& governor() { return governor_; }
  Telemetry& telemetry() { return *telemetry_; }
  bool contains(const void* address) const { return pool_contains_->contains(address); }

  void* allocate(uint64_t bytes, uint32_t account, Stream stream, bool no_wait);
  bool release(void* address);
  int owner(const void* address) const;
  void end_job(uint32_t account);
  void trim(uint32_t account);
  std::string check();

 private:
  Heap& heap(uint32_t account, Stream stream);
  bool will_persist(Account& a, uint64_t bytes) const;
  void log(Logged what, uint32_t account, Stream stream, const void* address, uint64_t bytes);

  Telemetry* telemetry_;
  Governor governor_;
  const Pool* pool_contains_;
  PageMap map_;
  uint64_t region_bytes_;
  std::atomic<Heap*> default_heap_[kAccounts] = {};  // stream 0: no look-up
  std::mutex heaps_mutex_;
  std::map<std::pair<uint32_t, Stream>, std::unique_ptr<Heap>> heaps_;
};

// Null until gs_start has succeeded.
Runtime* runtime();
bool in_forked_child();

// Trivial: no constructor runs when a thread first allocates, none when it ends.
struct ThreadState {
  uint32_t account;
  int32_t no_wait;
  bool collecting;  // garbage, in Python
  void* cpu_generator;
};
extern thread_local ThreadState thread_state __attribute__((tls_model("initial-exec")));

}  // namespace gpushare
