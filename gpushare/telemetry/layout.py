"""Layout of the telemetry memory; the same as in `shim/src/telemetry.h`."""

from __future__ import annotations

MAGIC = 0x4750555348415245
ACCOUNTS, HEADER_BYTES, SLOT_BYTES, RING_ENTRIES = 64, 4096, 512, 4096
WAKE_ENTRIES = 16384
WAKES_AT = HEADER_BYTES + ACCOUNTS * SLOT_BYTES + ACCOUNTS * RING_ENTRIES * 32
TOTAL_BYTES = WAKES_AT + WAKE_ENTRIES * 8

HEADER = [
    "magic",
    "version",
    "page_bytes",
    "budget_bytes",
    "held_bytes",
    "held_peak_bytes",
    "backed_bytes",
    "shared_held_bytes",
    "start_ns",
    "tick_ns",
    "overlap_ns",
    "eligible_ns",
    "headroom_bytes",
    "pool_base",
    "pool_reserved_bytes",
    "pages_dropped",
    "pages_changed_owner",
    "jobs",
    "parks",
    "park_ns",
    "ring_entries",
    "policy",
    "wakes",
]
SLOT = [
    "state",
    "held_bytes",
    "held_peak_bytes",
    "live_bytes",
    "live_peak_bytes",
    "iterations",
    "last_iteration_ns",
    "solo_peak_bytes",
    "residue_bytes",
    "claim_bytes",
    "progress",
    "curve_length",
    "door_wait_ns",
    "memory_wait_ns",
    "waits",
    "overruns",
    "largest_overrun_bytes",
    "shift_sum_ns",
    "shift_count",
    "predicted_shift_ns",
    "allocations",
    "frees",
    "python_grants",
    "solo_iteration_ns",
    "shared_iteration_sum_ns",
    "shared_iterations",
    "cpu_ns",
    "profiled",
    "oom_count",
    "needs_at_least_bytes",
    "ring_head",
    "begin_ns",
    "end_ns",
    "solo_live_peak_bytes",
    "longest_wake_ns",
    "refusal",
    "others_keep_bytes",
    "copies_out",
    "copied_out_bytes",
]
STATES = (
    "starting",
    "set-up",
    "alone",
    "iterating",
    "at the door",
    "waits for memory",
    "ended",
    "copied out",
)
ALONE_TOO_LARGE, TOO_LARGE_BESIDE_OTHERS = 1, 2  # values of "refusal"
EVENTS = (
    "",
    "open",
    "close",
    "door wait begin",
    "door wait end",
    "memory wait begin",
    "memory wait end",
    "held changed",
    "overrun",
)
