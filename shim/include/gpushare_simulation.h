// The C API of the simulator, which needs no runtime and touches none; and of the rules of doors by
// themselves. Part of gpushare.h's version.
#pragma once

#include "gpushare.h"

#ifdef __cplusplus
extern "C" {
#endif

// The governor under a virtual clock, with jobs that have no threads and pages that are
// only counted. Any number at once, beside a runtime or without one; each is driven by one thread.
// Null: the arguments are out of range.
typedef struct gs_sim gs_sim;
GS_EXPORT gs_sim* gs_sim_begin(int32_t policy, uint64_t page_bytes, uint64_t budget_bytes);
GS_EXPORT void gs_sim_end(gs_sim* sim);
GS_EXPORT void gs_sim_time(gs_sim* sim, uint64_t now_ns);  // 1 at the beginning; never backwards
// With the curve of a profile, or n = 0: its first two iterations run alone. -1: too many jobs.
GS_EXPORT gs_account gs_sim_job_begin(gs_sim* sim, const uint64_t* held, const uint64_t* time_ns,
                                      uint64_t n, uint64_t residue_bytes, uint64_t duration_ns);
// These answer 0: it goes on; 1: it waits; 2: it is refused, see gs_sim_refusal; -1: no such job. A
// job that waits is looked at again, once its bit is in gs_sim_ready, before it does anything else.
GS_EXPORT int gs_sim_hold(gs_sim* sim, gs_account job, uint64_t bytes);   // its next allocation
GS_EXPORT void gs_sim_free(gs_sim* sim, gs_account job, uint64_t bytes);  // frees down to these
GS_EXPORT int gs_sim_door(gs_sim* sim, gs_account job);  // an iteration ended, or the set-up
GS_EXPORT int gs_sim_look(gs_sim* sim, gs_account job);
GS_EXPORT uint64_t gs_sim_ready(gs_sim* sim);
GS_EXPORT const char* gs_sim_refusal(gs_sim* sim);
GS_EXPORT void gs_sim_job_end(gs_sim* sim, gs_account job);  // all that it holds comes back
GS_EXPORT void gs_sim_tick(gs_sim* sim);                     // what the sampler does every 10 ms
// What it does when a start is planned, and when that is; UINT64_MAX: it is not.
GS_EXPORT void gs_sim_look_at_doors(gs_sim* sim);
GS_EXPORT uint64_t gs_sim_next_look(gs_sim* sim);
GS_EXPORT uint64_t gs_sim_version(gs_sim* sim);
GS_EXPORT const char* gs_sim_budget(gs_sim* sim, uint64_t bytes);  // why not, or ""
GS_EXPORT void gs_sim_permits(gs_sim* sim, const gs_permit* permits, uint32_t count);
GS_EXPORT int gs_sim_order(gs_sim* sim, int32_t order, uint64_t quantum_ns);
GS_EXPORT void gs_sim_rank(gs_sim* sim, gs_account job, int64_t rank);
GS_EXPORT void gs_sim_aside(gs_sim* sim, uint64_t accounts);  // as gs_aside_set
GS_EXPORT uint64_t gs_sim_copied_out(gs_sim* sim);            // as gs_copied_out
GS_EXPORT void gs_sim_split(gs_sim* sim, uint64_t bytes);     // as gs_split_set
// about: residue in bytes, how long an iteration takes in nanoseconds.
GS_EXPORT uint64_t gs_sim_curve(gs_sim* sim, gs_account job, uint64_t* held, uint64_t* time_ns,
                                uint64_t capacity, uint64_t about[2]);
// Held bytes, iterations, allocations into the open one, allocations of the curve, nanoseconds of
// an iteration alone, at doors, waiting for memory; waits for memory, overruns, refusals, copies
// out; sum of the time shifts, number of them; version of the curve; the most
// iterations that one other job began while this one waited at a door; leases.
GS_EXPORT int gs_sim_job_get(gs_sim* sim, gs_account job, uint64_t out[16]);
GS_EXPORT int gs_sim_progress_get(gs_sim* sim, gs_account job,
                                  uint64_t out[GS_PROGRESS_FIGURES]);        // as gs_progress_get
GS_EXPORT void gs_sim_pool_get(gs_sim* sim, uint64_t out[GS_POOL_FIGURES]);  // as gs_pool_get
GS_EXPORT const char* gs_sim_check(gs_sim* sim);                             // what is wrong, or ""
// The banker's check by itself: 1 if n open iterations can all end with `available` pages. -1: n is
// too large.
GS_EXPORT int gs_is_safe(const uint64_t* held, const uint64_t* claim, const uint64_t* residue,
                         uint64_t n, uint64_t available);
// The forecast by itself: 1 if an iteration that starts now fits within `room` pages with n others
// that have made at[i] allocations. Curves lie one behind the other, the newcomer's first:
// lengths[i] pages held, and times; then residues[i] pages.
GS_EXPORT int gs_fits_together(const uint32_t* held, const uint64_t* time_ns,
                               const uint64_t* lengths, const uint64_t* residues,
                               const uint32_t* at, uint64_t n, uint64_t room);

#ifdef __cplusplus
}
#endif
