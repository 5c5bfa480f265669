// The one object behind the C API: pool, governor and the heaps of every account. Made by gs_start,
// never destroyed: tensors outlive everything at exit.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <tuple>
#include <vector>

#include "../include/gpushare.h"
#include "bad_frees.h"
#include "governor.h"
#include "heap.h"
#include "streams.h"

namespace gpushare {

class Runtime {
 public:
  Runtime(const gs_config& config, Device* device, Telemetry* telemetry);

  Governor& governor() { return governor_; }
  Telemetry& telemetry() { return *telemetry_; }
  BadFrees& bad_frees() { return bad_frees_; }
  bool contains(const void* address) const { return pool_contains_->contains(address); }

  void* allocate(uint64_t bytes, uint32_t account, Stream stream, bool no_wait, uint32_t arena = 0);
  // False for an address that is no block's start: nothing was changed.
  bool release(void* address);
  // The block is used on another stream than the one it was allocated for (Tensor.record_stream).
  bool note_use(void* address, Stream stream);
  // The account may use the stream from now on: what it frees is fenced there too.
  void begin_stream(uint32_t account, Stream stream);
  // Before a stream is destroyed. What was allocated on it stays usable.
  void end_stream(Stream stream);
  // One more of the account's, as torch's pool gives them. Throws DeviceFailure.
  Stream side_stream(uint32_t account, int priority);
  // Waits until what the account has issued on its streams is done. Throws DeviceFailure.
  bool synchronize(uint32_t account);
  // Waits where the account is at its door.
  void pass_door(uint32_t account);
  // The account captures a CUDA graph from now on, or no longer. What it allocates for the graph
  // meanwhile names an arena; what it frees leaves the job later.
  void begin_capture(uint32_t account);
  void end_capture(uint32_t account);
  // The graph is gone: its memory can leave, once the account captures no other.
  void end_arena(uint32_t account, uint32_t arena);
  // Its blocks that are in use; just these are from now on. Throws DeviceFailure: it is not set
  // back, but blocks that other streams use may have been freed; std::logic_error: these are not
  // blocks that it has told of.
  std::vector<gs_arena_block> arena_blocks(uint32_t account, uint32_t arena);
  void restore_arena(uint32_t account, uint32_t arena, const std::vector<gs_arena_block>& blocks);
  // Every few milliseconds, by the sampler.
  void tick();
  int owner(const void* address) const;
  void end_job(uint32_t account);
  void trim(uint32_t account);
  std::string check();
  // Index of the GPU; -1 on the host device.
  int32_t device() const { return device_; }
  // The job that has begun the stream; `shared` if none has.
  uint32_t account_of(Stream stream);
  std::vector<gs_piece> pieces(uint32_t account);
  uint64_t block_bytes(const void* address);

 private:
  void trim_ended();
  // The account no longer uses a stream that goes on.
  void leave_stream(uint32_t account, Stream stream);
  void end_heaps(Stream stream, const std::function<bool(uint32_t)>& of_account);
  Heap& heap(uint32_t account, Stream stream, uint32_t arena);
  Heap& find_heap(uint32_t account, Stream stream, uint32_t arena);
  std::set<uint32_t> arenas(uint32_t account);
  std::vector<Heap*> heaps_of(uint32_t account, uint32_t arena);
  bool free_used_elsewhere(Account& a, const std::vector<Heap*>& heaps);
  void note_restored(Account& a, const std::vector<gs_arena_block>& freed,
                     const std::vector<gs_arena_block>& made);
  bool will_persist(Account& a, uint64_t bytes) const;
  bool refuse_free(const void* address, Span* span);
  void remember_free(void* address, Span* span);
  Kind expected_kind(const Account& a, uint64_t bytes) const;
  void log(Logged what, uint32_t account, Stream stream, const void* address, uint64_t bytes,
           Kind kind = Kind::kUnknown);

  Telemetry* telemetry_;
  Device* pool_device_;
  SideStreams side_streams_;
  Governor governor_;
  BadFrees bad_frees_;
  const Pool* pool_contains_;
  PageMap map_;
  uint64_t region_bytes_;
  int32_t device_;
  std::atomic<Heap*> default_heap_[kAccounts] = {};  // stream 0: no look-up
  std::mutex heaps_mutex_;
  using Key = std::tuple<uint32_t, uint32_t, Stream>;  // account, arena
  std::map<Key, std::unique_ptr<Heap>> heaps_;
  uint64_t frees_seen_[kAccounts] = {};  // of accounts that have ended; the sampler alone
  // Of streams and graphs that are gone; their blocks may not be.
  std::vector<std::unique_ptr<Heap>> ended_;
  std::map<uint32_t, std::set<uint32_t>> late_arenas_;  // of accounts: to end with their captures
  std::atomic<uint64_t> heaps_version_;
  std::mutex streams_mutex_;
  std::map<Stream, uint32_t> job_of_;
};

// Null until gs_start has succeeded.
extern Runtime* g_runtime;  // set once, by gs_start
extern bool g_in_child;
inline Runtime* runtime() { return g_runtime; }
inline bool in_forked_child() { return g_in_child; }

// The heap that a thread used last; stale once a stream has ended since.
struct HeapCache {
  Heap* heap;
  uint64_t version;
};

// Trivial: no constructor runs when a thread first allocates, none when it ends.
struct ThreadState {
  uint32_t account;
  int32_t no_wait;
  bool collecting;   // garbage, in Python
  bool entered;      // counted among its job's threads
  bool leads;        // the first of them, which runs the script
  bool awaits_fork;  // its turn to, and is counted among those that wait
  void* cpu_generator;
  void* cuda_generator;  // and the stream: null where torch's own answers
  Stream cuda_stream;
  HeapCache last_heap;
};
extern thread_local ThreadState thread_state __attribute__((tls_model("initial-exec")));

}  // namespace gpushare
