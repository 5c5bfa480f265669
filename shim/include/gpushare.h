// The C API of the shim: the pool, its accounts, and the safety check that guards them.
//
// Threading: every function may be called from any thread unless it says otherwise; none needs the
// GIL, and those that may wait release it if the caller holds it. After fork() a child may call all
// of them: they do nothing there, and its allocations come from the system.
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define GS_API_VERSION 27
#define GS_EXPORT __attribute__((visibility("default")))
#define GS_MAX_ACCOUNTS 64
#define GS_MOST_KINDS 8    // of iterations of a job
#define GS_KIND_STEPS 128  // of the curve of one
#define GS_POOL_FIGURES 7  // of gs_pool_get
#define GS_PROGRESS_FIGURES 9
#define GS_SHARED 0          // the account of what no job owns
#define GS_NEVER UINT64_MAX  // as a permit's `made`: not while that iteration runs

typedef int32_t gs_account;  // 0 is `shared`; jobs are 1 .. GS_MAX_ACCOUNTS - 1
typedef uint64_t gs_stream;  // 0 on the host device, where every stream is synchronous
typedef uint32_t gs_arena;   // graph pool; 0 outside captures

enum gs_policy { GS_UNMANAGED = 0, GS_TEMPORAL = 1, GS_ZICO = 2 };
// Who of those that wait at their doors goes first: who asked first; who was granted the least
// memory for the least time; whose rank is lowest.
enum gs_order { GS_FIFO = 0, GS_FAIR = 1, GS_RANKED = 2 };
enum gs_device_kind { GS_HOST = 0, GS_CUDA = 1 };
// What a call failed for, beside the text: more memory would have helped, or not.
// GS_INTERRUPTED: the wait ended for what the job was sent.
enum gs_failure { GS_NO_FAILURE = 0, GS_FAILED = 1, GS_OUT_OF_MEMORY = 2, GS_INTERRUPTED = 3 };

typedef struct gs_config {
  uint64_t budget_bytes;   // rounded down to pages
  uint64_t page_bytes;     // a power of two, 2 MiB on the host device
  uint64_t region_bytes;   // a multiple of page_bytes
  uint64_t address_bytes;  // address space to reserve; 0: sixteen budgets, 256 regions at least
  int32_t policy;          // enum gs_policy
  int32_t telemetry_fd;    // memfd of gs_telemetry_bytes(), or -1 for private memory
  int32_t parent_pid;      // the process group is killed when this parent is gone; 0: never
  int32_t log_fd;          // file for the allocation log, or -1
  int32_t debug_memory;    // 1: remember what is freed, for gs_bad_free_next(), and overwrite it
  int32_t device_kind;     // enum gs_device_kind
  int32_t device_index;    // of the GPU, as the driver counts them; without meaning on the host
  const char* driver;      // library of the CUDA driver; null: libcuda.so.1
} gs_config;

// What an account may and does use, in bytes and counts. A block that was freed while another
// stream uses it counts as freed. What has a peak is followed since gs_memory_reset_peaks, what
// adds up since gs_memory_reset_totals.
typedef struct gs_memory {
  uint64_t budget_bytes, page_bytes;
  uint64_t limit_bytes;      // the most that the account may hold; the budget, or less
  uint64_t pool_held_bytes;  // by all accounts
  uint64_t shared_bytes;     // by what no job owns
  uint64_t live_bytes, live_peak_bytes, allocated_bytes, freed_bytes;  // blocks
  uint64_t blocks, blocks_peak, allocations, frees;
  uint64_t held_bytes, held_peak_bytes, charged_bytes, returned_bytes;  // pages
  uint64_t refusals;                                                    // out of memory
  uint64_t copied_out_bytes;  // pages that are to come back; not in held_bytes
} gs_memory;

// A piece of what an account holds: a block, or bytes between blocks.
enum gs_use { GS_FREE = 0, GS_USED = 1, GS_USED_ELSEWHERE = 2 };
typedef struct gs_piece {
  uint64_t address, bytes;
  uint64_t asked;    // for it, less than `bytes` or as many; 0 if it is free
  uint64_t segment;  // where the run of held pages begins in which it lies
  gs_stream stream;  // that it was allocated for; UINT64_MAX: one that is gone
  gs_arena arena;
  int32_t use;  // enum gs_use; used elsewhere: freed, but another stream may still use it
} gs_piece;

// A block of an arena that is in use, as gs_arena_restore needs to know it.
typedef struct gs_arena_block {
  uint64_t address, bytes;  // bytes as they were asked for; of a small block its size class
  uint64_t slab;            // where the slab of a small block begins; 0: it is none
  gs_stream stream;         // that it was allocated for
  int32_t persistent;       // it lies among those that outlive their iteration
} gs_arena_block;

GS_EXPORT int gs_api_version(void);
GS_EXPORT uint64_t gs_telemetry_bytes(void);
// Starts pool, sampler and telemetry, once per process. 0, or -1 with gs_last_error() set.
GS_EXPORT int gs_start(const gs_config* config);
GS_EXPORT const char* gs_last_error(void);  // of this thread
// A free that fits no block. Such a free changes nothing and is counted for the job that did it.
enum gs_bad_free_kind { GS_FREED_TWICE = 1, GS_FREED_INSIDE = 2, GS_FREED_NO_BLOCK = 3 };
typedef struct gs_bad_free {
  uint64_t address, bytes;  // what was freed; size of the block (0: none is known)
  uint64_t offset;          // of the address in the block
  uint64_t iteration;       // of `freed_by`, when it freed the block before
  int32_t kind;             // enum gs_bad_free_kind
  gs_account freer, owner, freed_by;
} gs_bad_free;
// The next one that was not read, with debug_memory. 1, or 0 if there is none.
GS_EXPORT int gs_bad_free_next(gs_bad_free* out);
GS_EXPORT int gs_last_failure(void);  // enum gs_failure, of this thread's last gs_try_alloc
// Index of the GPU whose memory the pool is; -1 on the host device, or before the start.
GS_EXPORT int32_t gs_device(void);
// Writes out what the logs have buffered. -1 if a part of one could not be written.
GS_EXPORT int gs_log_flush(void);

// Accounts. begin returns the account or -1 (too many jobs). Warm-up counts the iterations that run
// alone before the profiled one, which runs alone too.
// A queued job counts for nothing until it is admitted.
GS_EXPORT gs_account gs_job_begin(int32_t queued, int32_t warmup_iterations);
GS_EXPORT void gs_job_admit(gs_account job);
GS_EXPORT void gs_job_end(gs_account job);  // survivors stay charged until they are freed
// A job that was copied out has no room to come back beside what ended jobs and libraries keep. 1
// if so, and for how long (ns), and the bytes that were copied out, those that are kept, the
// budget, and the one that would do.
GS_EXPORT int gs_stranded(gs_account job, uint64_t out[5]);
// Ends such a job, whose threads never go on. 0 if it can come back after all.
GS_EXPORT int gs_abandon(gs_account job);
GS_EXPORT void gs_thread_enter(gs_account job, void* cpu_generator);
GS_EXPORT void gs_thread_leave(void);
// From now on the interpreter's waits for locks, moments, descriptors and children are rests: a job
// whose other threads rest can be copied out. Once, when the modules that wait are loaded (select,
// _multiprocessing, _socket). Returns how many entries of tables it changed; 0: none of locks, and
// nothing.
GS_EXPORT int gs_rests_watch(void);
// From now on what scripts' threads wait for the interpreter's lock is in the telemetry. Returns
// how many entries of tables it changed.
GS_EXPORT int gs_gil_waits_watch(void);
// From now on waits for mutexes of a loaded library are rests too; `library` is the begin of its
// file's name. For one that allocates with such a mutex in hand. Returns how many entries of tables
// it changed.
GS_EXPORT int gs_rests_watch_locks(const char* library);
// From now on "/dev/stdout" and its kin, which Python opens for a job, are the job's descriptors 0,
// 1 and 2, once they are told (null: no longer). Returns how many entries of tables it changed.
GS_EXPORT int gs_streams_watch(void);
GS_EXPORT void gs_streams_set(gs_account job, const int32_t own[3]);
// Setters of attributes that stand in the place of the interpreter's own (`plain`: that of classes,
// that of modules; `watching`: ours). They hand what scripts assign, whose builtins are not
// `shared_builtins`, to `decide`, a Python callable of target, name and value (`deleted` for none),
// and what anybody assigns to a target that is marked. Where it answers False they go on plainly.
// The caller keeps the objects. With the GIL, as all of it.
GS_EXPORT void gs_assignments_watch(void* decide, void* deleted, void* shared_builtins,
                                    void* const plain[2], void* watching[2]);
GS_EXPORT void gs_assignments_mark(void* target, int32_t delta);  // marks (+1) or no longer (-1)
GS_EXPORT gs_account gs_thread_account(void);
// Torch's switches that the calling thread sees and sets from now on: those of a job, which it has
// from gs_thread_enter on; of the process (0); or of nobody (GS_MAX_ACCOUNTS). Returns whose
// before.
GS_EXPORT gs_account gs_switches_of(gs_account account);
// Region of torch's compiled code that the calling thread uses (-1: that of its job). Returns the
// last one.
GS_EXPORT int64_t gs_compile_region(int64_t region);
GS_EXPORT void gs_cancel(gs_account job);    // its waits end from now on, in an error if need be
GS_EXPORT void gs_uncancel(gs_account job);  // it waits again, as before
// With the GIL: raises a class of Python in that thread, the main one of the job (or any, for 0),
// in place of what was sent last: at its next bytecode, right after a wait of the interpreter,
// which ends, or, where its wait for memory is cancelled, at that line.
GS_EXPORT void gs_interrupt(gs_account job, uint64_t thread, void* kind);
// With the GIL: one more section in which nothing that is sent to the thread comes; in how many it
// is; and that it is in so many only from now on (0: what was held back last comes).
GS_EXPORT void gs_hold_back(uint64_t thread);
GS_EXPORT int32_t gs_held_sections(uint64_t thread);
GS_EXPORT void gs_let_come(uint64_t thread, int32_t sections);
GS_EXPORT void gs_hold_back_alone(uint64_t thread);  // a forked child has no other
GS_EXPORT void gs_interrupt_came(gs_account job);    // at a bytecode
// Handlers of signals, called in the main thread of a job between two lines, or in a wait of the
// interpreter. With the GIL, as all of it. `ready`, of no arguments, gives a deque of what is to be
// called, each with `handler` and `number`, or None while nothing may be; `finished` is told each
// one once it is through, and `forward` what one has raised in a wait. None is called at a line of
// a file whose name begins with `ours`. -1: this Python keeps what traces a thread elsewhere.
GS_EXPORT int gs_handlers_begin(void* ready, void* finished, void* forward, const char* ours);
GS_EXPORT void gs_handlers_follow(gs_account job, int32_t runs);  // by that thread: begins or ends
GS_EXPORT void gs_handlers_ask(gs_account job, int32_t wanted);   // by any
// From Python 3.12 on that has to be called at each line of the thread: by sys.monitoring.
GS_EXPORT void* gs_line_callback(void);
// After GS_INTERRUPTED: throws what torch raises so.
GS_EXPORT void gs_raise_interrupt(gs_account account);
GS_EXPORT void gs_nowait(int32_t delta);  // enters (+1) or leaves (-1) a section that must not wait

// For gc.callbacks: called when a collection starts and when it stops, with Python objects that are
// not looked at. Nobody waits for memory in between, since finalizers of any job run there.
GS_EXPORT void gs_collection(void* phase, void* info);
// Iterations. The mark says that an iteration ended; the next allocation is at the door.
GS_EXPORT void gs_iteration_mark(gs_account job);
// Passes the door where the calling job is at it, as its next allocation would; may wait. -1: the
// job can't go on beside the others.
GS_EXPORT int gs_iteration_door(void);
// An iteration ends at the `nodes`-th node of an autograd graph that the job makes from now on; 0:
// no longer. Returns how many were left of the last watch.
GS_EXPORT int32_t gs_iteration_watch(gs_account job, int32_t nodes);
// Curve of the profile: claim[k], held bytes at allocation k at most; time_ns[k] since the door.
// duration_ns: of the whole iteration; not less than the last of the times.
GS_EXPORT int gs_curve_set(gs_account job, const uint64_t* held, const uint64_t* time_ns,
                           uint64_t n, uint64_t residue_bytes, uint64_t duration_ns);
// A kind of a job's iterations, its curve cut into steps: step i begins at allocation ordinal[i],
// time_ns[i] after the iteration's start, and holds held_bytes[i] at most.
typedef struct gs_kind {
  uint64_t allocations;                 // of an iteration
  uint64_t residue_bytes, duration_ns;  // at its end
  uint64_t seen;                        // so many were of it,
  uint64_t followed_by[GS_MOST_KINDS];  // and so many of them were followed by that kind
  uint64_t steps;
  uint64_t ordinal[GS_KIND_STEPS], held_bytes[GS_KIND_STEPS], time_ns[GS_KIND_STEPS];
} gs_kind;
// The counts are those since the job began: none for a kind that was given and has not come yet,
// whose times are those given. -1: there are not so many kinds.
GS_EXPORT int gs_kind_get(gs_account job, uint32_t index, gs_kind* out);
// A kind of a saved profile, in their order, after gs_curve_set.
GS_EXPORT int gs_kind_add(gs_account job, const gs_kind* kind);
// The log of the job's profiled iteration: records as with log_fd, but small blocks in their size
// class. Copies up to `capacity` bytes; returns the log's bytes (0: there is none yet).
GS_EXPORT uint64_t gs_profiled_log(gs_account job, void* out, uint64_t capacity);
// Copies up to `capacity` points; returns the curve's length (0: none yet). about: residue in
// bytes, how long an iteration takes, and a version, which differs once the curve has changed.
GS_EXPORT uint64_t gs_curve_get(gs_account job, uint64_t* held, uint64_t* time_ns,
                                uint64_t capacity, uint64_t about[3]);
// How far a job has come: iterations, allocations into the open one, allocations of its curve (0:
// none yet), nanoseconds of an iteration alone; and millionths of iterations done since the
// profile, the open one's part included, each as long as its kind is against the profiled one. What
// an iteration of the profiled one's kind takes now, in nanoseconds (0: none has come yet). The
// most that iterations hold, in bytes, and allocate, of the kinds that come often; and whether a
// thread of the job waits here.
GS_EXPORT int gs_progress_get(gs_account job, uint64_t out[GS_PROGRESS_FIGURES]);
// Bytes of the live blocks at the peak of the profiled iteration: persistent, activation,
// temporary.
GS_EXPORT int gs_peak_kinds(gs_account job, uint64_t out[3]);
// `job` may open its door while `after` is in an iteration only once that has made so many
// allocations (GS_NEVER: only when it is at a door) and, by_forecast, the curves of all that are
// under way say that it fits with them. shift_ns: the forecast shift, for the record.
typedef struct gs_permit {
  gs_account job, after;
  uint64_t made, shift_ns;
  uint32_t by_forecast;
} gs_permit;
// Of these pairs, at once: no door opens on a part of them. Other pairs keep what they have.
GS_EXPORT void gs_permits_set(const gs_permit* permits, uint32_t count);
// Of doors. Where jobs take turns, one goes on through its door for quantum_ns. -1: no such order.
GS_EXPORT int gs_order_set(int32_t order, uint64_t quantum_ns);
GS_EXPORT void gs_rank_set(gs_account job, int64_t rank);
// Jobs that start no iterations for now, and whose memory is copied out at their doors: bit i is
// account i. It has no effect while no other job that was measured is there.
GS_EXPORT void gs_aside_set(uint64_t accounts);
GS_EXPORT uint64_t gs_copied_out(void);  // whose memory is away, likewise
// Leases: an open iteration is promised what it needs for a segment, in which it allocates or frees
// so many bytes, before it needs it. 0: no leases, which is so at the start; UINT64_MAX: a 16th of
// what the job's iteration holds beyond its residue.
GS_EXPORT void gs_split_set(uint64_t bytes);
// Writes a record of each wait to the file from now on.
GS_EXPORT void gs_decisions_start(int32_t fd);
// Returns when something that a policy may care about changed since `seen`, or after the timeout.
GS_EXPORT uint64_t gs_wait_change(uint64_t seen, uint64_t timeout_ns);

// Fork: returns when every other job is at a door, waits in the shim or has no open iteration, or
// after timeout_ns; 1 if all are parked, 0 after the timeout. They stay until unpark.
GS_EXPORT int gs_park_others(gs_account job, uint64_t timeout_ns);
GS_EXPORT void gs_unpark_others(gs_account job);
// The calling thread is about to fork, and waits until no other job's does, from now on or no
// longer: it is as if it were parked.
GS_EXPORT void gs_await_fork(gs_account job, int waits);

// Memory. Throws a std::exception (C++) out of memory; never returns null for bytes > 0. Where the
// pool is a GPU's, `device` -1 means the host's memory, which comes from the system; an account 0
// means that of the stream's job, if it has one and no arena is named.
GS_EXPORT void* gs_alloc(uint64_t bytes, int32_t device, gs_account account, gs_stream stream,
                         gs_arena arena);
// The same for callers that can't catch: null, with gs_last_error() set.
GS_EXPORT void* gs_try_alloc(uint64_t bytes, int32_t device, gs_account account, gs_stream stream,
                             gs_arena arena);
GS_EXPORT void gs_free(void* address, int32_t device, gs_stream stream);
// The block is used on another stream too (Tensor.record_stream): once freed, nobody gets it before
// what is on that stream now has ended. -1: no block starts there.
GS_EXPORT int gs_record_stream(void* address, gs_stream stream);
// A job captures a CUDA graph from now on, or no longer. What it allocates for the graph meanwhile
// names the graph's arena, and stays the job's until the arena ends; what it frees leaves later.
// Before that: from the first captured operation on, what the job freed until now can be fenced no
// more, and would be lost to all until the capture ends.
GS_EXPORT void gs_capture_prepare(gs_account job);
GS_EXPORT void gs_capture_begin(gs_account job);
GS_EXPORT void gs_capture_end(gs_account job);
GS_EXPORT void gs_arena_end(gs_account job, gs_arena arena);  // the graph is gone
// Copies up to `capacity` blocks of the arena that are in use; returns how many there are.
GS_EXPORT uint64_t gs_arena_blocks(gs_account job, gs_arena arena, gs_arena_block* out,
                                   uint64_t capacity);
// Just these blocks of the arena are in use from now on, as they were when gs_arena_blocks told of
// them; what lies in them stays. A graph is recorded behind others that were replayed, which make
// their blocks anew without any call. -1 with gs_last_error() set: the arena is gone, or its blocks
// are in use on other streams while the job captures.
GS_EXPORT int gs_arena_restore(gs_account job, gs_arena arena, const gs_arena_block* blocks,
                               uint64_t count);
// The job may use the stream from now on, whether it allocates for it or not: what it frees can
// still be in use there.
GS_EXPORT void gs_stream_begin(gs_account job, gs_stream stream);
GS_EXPORT gs_account gs_stream_account(gs_stream stream);  // the job that has begun it, else shared
// Before a stream is destroyed. Those of a job end with it.
GS_EXPORT void gs_stream_end(gs_stream stream);
// On a GPU, of the calling thread, which has entered a job: what torch's C++ takes for the default
// stream and the default generator (at::Generator's pointer) from now on; 0: torch's own. Without a
// stream torch.cuda.Stream() is of torch's pool, and torch.cuda.synchronize() waits for all.
GS_EXPORT void gs_thread_cuda_stream(gs_stream stream);
GS_EXPORT void gs_thread_cuda_generator(void* generator);
// A stream of the job that the legacy stream does not wait for, as torch's pool has them: 32 of a
// priority, in turn. 0 with gs_last_error() set.
GS_EXPORT gs_stream gs_side_stream(gs_account job, int32_t priority);
// Waits until what the account has issued on its streams is done. -1 with gs_last_error() set;
// GS_CAPTURED: it captures a graph on one of them, which forbids that, and loses that capture.
enum { GS_CAPTURED = -2 };
GS_EXPORT int gs_synchronize(gs_account account);
// Gives back the pages of the account that hold no block.
GS_EXPORT void gs_trim(gs_account account);
GS_EXPORT gs_account gs_owner(const void* address);  // -1: not of the pool
// For torch.cuda.memory.CUDAPluggableAllocator, where nothing can be compiled: for the calling
// thread's account. Out of memory is a std::exception whose text begins as torch's does.
GS_EXPORT void* gs_torch_alloc(size_t bytes, int device, void* stream);
GS_EXPORT void gs_torch_free(void* address, size_t bytes, int device, void* stream);
GS_EXPORT void gs_torch_record_stream(void* address, void* stream);
GS_EXPORT void gs_torch_empty_cache(void);
GS_EXPORT int gs_memory_get(gs_account account, gs_memory* out);
GS_EXPORT void gs_memory_reset_peaks(gs_account account);
GS_EXPORT void gs_memory_reset_totals(gs_account account);
// The account holds no more than this from now on: out of memory for it, where others could go on.
// What it holds already stays. UINT64_MAX: the budget is its only limit.
GS_EXPORT int gs_limit_set(gs_account account, uint64_t bytes);
// Copies up to `capacity` pieces of what the account holds, by address; returns how many there are.
// Nobody allocates meanwhile.
GS_EXPORT uint64_t gs_pieces(gs_account account, gs_piece* out, uint64_t capacity);
// Bytes that were asked for the block that starts there; 0: none does.
GS_EXPORT uint64_t gs_block_bytes(const void* address);
GS_EXPORT int gs_graph_seen(void);  // whether torch has numbered a graph node through the shim
// Walks pool and heaps. 0 if every invariant holds, else -1 with gs_last_error() set.
GS_EXPORT int gs_check(void);
// Now: bytes held by all, headroom, held by `shared`, budget; number of ranges of free addresses;
// how often a smaller budget was taken back, since jobs had come to need more, and the bytes that
// they needed the last time.
GS_EXPORT int gs_pool_get(uint64_t out[GS_POOL_FIGURES]);
// Raises the budget, or lowers it as soon as the open iterations can end within the new one. -1 if
// it is less than the jobs need, or more than addresses were reserved for (half of address_bytes).
GS_EXPORT int gs_budget_set(uint64_t bytes);

// Companions of a job that is profiled: they go on until *stop is not 0, or for so long.
// Copies one half of the buffer to the other and back. out: bytes copied, nanoseconds.
GS_EXPORT void gs_traffic(void* buffer, uint64_t bytes, const int32_t* stop, uint64_t most_ns,
                          uint64_t out[2]);
// Looks about every `every_ns` whether any thread holds the GIL. out: looks, those at which one
// did. The caller must not hold it. -1: there is no Python.
GS_EXPORT int gs_gil_watch(uint64_t every_ns, const int32_t* stop, uint64_t most_ns,
                           uint64_t out[2]);

#ifdef __cplusplus
}
#endif
