/* What a test tells and asks the fake CUDA driver. The driver's own entry points are those of
 * shim/src/devices/cuda_api.h; product code finds them with dlopen(GPUSHARE_FAKE_CUDA) and dlsym.
 *
 * Streams run late: nothing that was issued happens before fake_cuda_run or a wait of the CPU runs
 * it, in an order drawn from the seed among those that streams, events and the legacy stream's
 * rules allow. Copies between host and device happen late too, as if the host's memory were pinned.
 *
 * Every function may be called from any thread, except fake_cuda_reset. Results are CUresults; a
 * stream is the CUstream that the driver gave, or null for the legacy stream. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define FAKE_CUDA_API __attribute__((visibility("default")))
#define FAKE_CUDA_MAX_ENTRY_POINTS 64

/* Waits of the CPU for the device. */
struct fake_cuda_waits {
  uint64_t calls; /* how often it was asked for */
  uint64_t ran;   /* how often something was left to do */
};

struct fake_cuda_counters {
  uint64_t calls[FAKE_CUDA_MAX_ENTRY_POINTS]; /* in the order of fake_cuda_entry_points */
  struct fake_cuda_waits stream_waits;        /* cuStreamSynchronize */
  struct fake_cuda_waits event_waits;         /* cuEventSynchronize */
  struct fake_cuda_waits context_waits;       /* cuCtxSynchronize */
  struct fake_cuda_waits copy_waits;          /* cuMemcpyDtoH, cuMemcpyHtoD */
  uint64_t device_waits;                      /* cuStreamWaitEvent of an event with a record */
  uint64_t wrong_reads;
  uint64_t misuses;
  uint64_t expected_misuses; /* of which fake_cuda_expect_misuse tells; not among the others */
  uint64_t capture_errors;   /* CUDA_ERROR_STREAM_CAPTURE_*, CUDA_ERROR_CAPTURED_EVENT */
  uint64_t captured;         /* operations that went into a capture, so never ran */
  uint64_t deadlocks;        /* waits of the CPU that could never end; each is a misuse too */
  uint64_t operations;       /* operations that ran on the device */
  uint64_t pending;          /* operations that were issued and have not run */
  uint64_t live_handles;     /* not yet released; their memory may live longer, by its mappings */
  uint64_t live_mappings;
  uint64_t live_reservations;
  uint64_t live_streams;
  uint64_t live_events;
  uint64_t bytes_created; /* of all cuMemCreate */
  uint64_t bytes_held;    /* of device memory, now */
  uint64_t bytes_held_peak;
};

/* Forgets everything, also handles, addresses and the settings below, and cuInit was not called. */
FAKE_CUDA_API void fake_cuda_reset(uint64_t seed);

/* A power of two, at least the host's page. After a reset, and for a program that does not know
 * these functions, what the environment has as FAKE_CUDA_GRANULARITY, or 2 MiB. */
FAKE_CUDA_API void fake_cuda_set_granularity(size_t bytes);
/* The device's memory; 1 GiB after a reset. */
FAKE_CUDA_API void fake_cuda_set_memory(size_t bytes);
/* How much of it another process has taken. */
FAKE_CUDA_API void fake_cuda_take(size_t bytes);
/* Without access, a CPU that touches device memory faults, as on a real machine; with it (so after
 * a reset), a test can look at what is mapped. Concerns later calls of cuMemSetAccess. */
FAKE_CUDA_API void fake_cuda_set_host_access(int allowed);

/* Kernels. A write puts the tag into each 8 bytes that lie at a multiple of 8 (their part of it at
 * the ends), so a part of what was written can be read with the same tag. A read that finds
 * anything else is counted as one wrong read. Both last 1, unless it is said how long. */
FAKE_CUDA_API int fake_cuda_launch_write(void* stream, unsigned long long address, size_t bytes,
                                         uint64_t tag);
FAKE_CUDA_API int fake_cuda_launch_read(void* stream, unsigned long long address, size_t bytes,
                                        uint64_t tag);
FAKE_CUDA_API int fake_cuda_launch_write_for(void* stream, unsigned long long address, size_t bytes,
                                             uint64_t tag, uint64_t duration);
FAKE_CUDA_API int fake_cuda_launch_read_for(void* stream, unsigned long long address, size_t bytes,
                                            uint64_t tag, uint64_t duration);

/* Runs up to that many operations of the device; returns how many ran. */
FAKE_CUDA_API size_t fake_cuda_run(size_t operations);
FAKE_CUDA_API size_t fake_cuda_run_all(void);
/* A stream that is held runs nothing, whoever waits for it. */
FAKE_CUDA_API int fake_cuda_hold(void* stream, int held);

/* New streams get the handles of destroyed ones, as with a real driver, which may do so while their
 * work is still under way. Without it, which is so after a reset, a stale handle is always found.
 */
FAKE_CUDA_API void fake_cuda_reuse_handles(int reuse);

/* The device's clock: what is issued starts when its stream, the events it waits for and the issue
 * time allow, whatever the order in which the fake runs it. Copies last 1, events and waits 0. */
FAKE_CUDA_API void fake_cuda_set_issue_time(uint64_t time);
/* When the last of all that was issued ends. */
FAKE_CUDA_API uint64_t fake_cuda_device_time(void);
/* A second clock: waits that are made from now on are an allocator's, until it is said that they no
 * longer are. By this clock nothing waits for them, but each access follows those earlier ones of
 * the same bytes that it must follow. So the ideal time is that of the best waits. */
FAKE_CUDA_API void fake_cuda_waits_for_memory(int so);
FAKE_CUDA_API uint64_t fake_cuda_ideal_time(void);

FAKE_CUDA_API struct fake_cuda_counters fake_cuda_read_counters(void);
/* Operations of the stream that were issued and have not run; 0, and a misuse, where there is no
 * such stream. */
FAKE_CUDA_API uint64_t fake_cuda_pending(void* stream);
/* 0 for a name that is no entry point. */
FAKE_CUDA_API uint64_t fake_cuda_calls(const char* entry_point);
/* From now on misuses with this in their texts are expected. */
FAKE_CUDA_API void fake_cuda_expect_misuse(const char* part);
/* Empty if there was none. Valid until the thread asks again. */
FAKE_CUDA_API const char* fake_cuda_last_misuse(void);
FAKE_CUDA_API const char* fake_cuda_last_wrong_read(void);

/* Makes the nth call from now (1: the next) return the result and do nothing else. Several may be
 * set. Returns 0 for a name that is no entry point. */
FAKE_CUDA_API int fake_cuda_fail(const char* entry_point, uint64_t nth, int result);
/* Ends with a null. */
FAKE_CUDA_API const char* const* fake_cuda_entry_points(void);

#ifdef __cplusplus
}
#endif
