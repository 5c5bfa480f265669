"""Calls into the shim: the pool, jobs and their threads, iterations, curves, permits."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from gpushare.native.library import Config, NativeError, last_error, lib, quick

UNMANAGED, TEMPORAL, ZICO = 0, 1, 2
# What the shim does under each policy, by its name. Where sharing is planned the doors are Zico's: they open where a
# permit says so, and the permits are the policy's.
_PLANNED = dict.fromkeys(("greedy", "zico", "waterwave", "auto"), ZICO)
POLICIES = {"unmanaged": UNMANAGED, "temporal": TEMPORAL, **_PLANNED}
HOST, CUDA = 0, 1
NEVER, BY_FORECAST = 2**64 - 1, 2**64 - 2  # as a permit's ordinal
ORDERS = {"fifo": 0, "fair": 1, "ranked": 2}
NO_JOB = 64  # an account of switches that no job has (GS_MAX_ACCOUNTS)


@dataclass(frozen=True)
class NativeCurve:
    """One iteration of a job: held bytes and nanoseconds since its door, by allocation ordinal."""

    held_bytes: list[int]
    time_ns: list[int]
    residue_bytes: int
    version: int


def start(
    *,
    budget_bytes: int,
    page_bytes: int,
    region_bytes: int,
    policy: str,
    telemetry_fd: int = -1,
    parent_pid: int = 0,
    log_fd: int = -1,
    debug_memory: bool = False,
    address_bytes: int = 0,
    gpu: int | None = None,
    driver: str | None = None,
) -> None:
    """Make the pool. `address_bytes` 0 reserves sixteen budgets of address space.

    `gpu` is the index of the GPU whose memory it is, as the driver counts; None is the host's memory. `driver` is
    the library of the CUDA driver if it is not `libcuda.so.1`. `log_fd` is the file of the allocation log
    (`telemetry/allocation_log.py`), -1 for none. `debug_memory` remembers
    what is freed, for `next_bad_free`, and overwrites it (not on a GPU).

    :raises NativeError: with the reason.
    """
    config = Config(
        budget_bytes,
        page_bytes,
        region_bytes,
        address_bytes,
        POLICIES[policy],
        telemetry_fd,
        parent_pid,
        log_fd,
        debug_memory,
        HOST if gpu is None else CUDA,
        gpu or 0,
        driver.encode() if driver else None,
    )
    if lib().gs_start(ctypes.byref(config)) != 0:
        raise NativeError(last_error())


def log_flush() -> None:
    """Write out what the allocation log has buffered.

    :raises NativeError: a part of it could not be written; the log ends there.
    """
    if lib().gs_log_flush() != 0:
        raise NativeError(last_error())


def telemetry_bytes() -> int:
    """Length of the telemetry memory as the shim lays it out."""
    count: int = lib().gs_telemetry_bytes()
    return count


def job_begin(warmup_iterations: int, *, queued: bool = False) -> int:
    """Open an account for a job and return its number. A queued one counts for nothing until `job_admit`.

    :raises NativeError: there are 63 jobs already.
    """
    account: int = lib().gs_job_begin(queued, warmup_iterations)
    if account < 0:
        raise NativeError("too many jobs: a host runs at most 63")
    return account


def job_admit(account: int) -> None:
    """The job begins: from now on it is one of those that share the pool."""
    lib().gs_job_admit(account)


def job_end(account: int) -> None:
    """The job is over: it needs no doors any more, and its empty pages return to the pool."""
    lib().gs_job_end(account)


def thread_enter(account: int, cpu_generator: int) -> None:
    """Charge the calling thread's tensors to `account`; its default generator is the one given."""
    lib().gs_thread_enter(account, cpu_generator or None)


def thread_leave() -> None:
    """The calling thread belongs to no job any more."""
    lib().gs_thread_leave()


def thread_account() -> int:
    """Account of the calling thread; 0 is `shared`."""
    account: int = quick["gs_thread_account"]()
    return account


@contextmanager
def switches_of(account: int) -> Iterator[None]:
    """The calling thread sees and sets torch's switches of another account in the block; 0: the process's."""
    before = lib().gs_switches_of(account)
    try:
        yield
    finally:
        lib().gs_switches_of(before)


def compile_region() -> Callable[[int], int]:
    """Sets the calling thread's region of compiled code and gives the last one; -1 is its job's. Not Python
    code, which the compiler would look at."""
    return quick["gs_compile_region"]


def cancel(account: int) -> None:
    """End the job's waits, now and later."""
    lib().gs_cancel(account)


def collection_callback() -> Callable[[str, dict[str, int]], None]:
    """For `gc.callbacks`. It runs no Python code, in which an interrupt could be raised and be lost."""
    return quick["gs_collection"]


def nowait(delta: int) -> None:
    """Enter (+1) or leave (-1) a section in which the calling thread must not wait for memory."""
    quick["gs_nowait"](delta)


def iteration_watch(account: int, nodes: int) -> int:
    """Mark at the `nodes`-th node of an autograd graph from now on, 0 for no longer; how many were left before."""
    left: int = quick["gs_iteration_watch"](account, nodes)
    return left


def iteration_mark(account: int) -> None:
    """An iteration ended here; the job's next allocation is at the door."""
    quick["gs_iteration_mark"](account)


def curve_set(account: int, held: Sequence[int], time_ns: Sequence[int], residue_bytes: int) -> None:
    """Give the curve of a saved profile, in bytes and nanoseconds by allocation ordinal."""
    array = ctypes.c_uint64 * len(held)
    if lib().gs_curve_set(account, array(*held), array(*time_ns), len(held), residue_bytes) != 0:
        raise NativeError(last_error())


def curve_get(account: int) -> NativeCurve | None:
    """What is known of the job's iterations; None before its profile."""
    capacity = 0
    residue, version = ctypes.c_uint64(), ctypes.c_uint64()
    while True:
        array = ctypes.c_uint64 * max(capacity, 1)
        held, time_ns = array(), array()
        length: int = lib().gs_curve_get(
            account, held, time_ns, capacity, ctypes.byref(residue), ctypes.byref(version)
        )
        if length == 0:
            return None
        if length <= capacity:
            return NativeCurve(held[:length], time_ns[:length], residue.value, version.value)
        capacity = length


def profiled_log(account: int) -> bytes:
    """Records of the job's profiled iteration (`telemetry/allocation_log.py`); empty before it has ended."""
    records = ctypes.create_string_buffer(lib().gs_profiled_log(account, None, 0))
    count: int = lib().gs_profiled_log(account, records, len(records))
    return records.raw[:count]


@dataclass(frozen=True)
class Progress:
    """What a job has done, the part of the open iteration included.

    `iterations` as they are counted; `work` since the profile, each iteration as long as its kind is against the
    profiled one, which takes `solo_ns` alone.
    """

    iterations: float
    solo_ns: int
    work: float


def progress(account: int) -> Progress | None:
    """How far the job has come; None before its profile."""
    out = (ctypes.c_uint64 * 5)()
    if lib().gs_progress_get(account, out) != 0:
        raise NativeError(last_error())
    iterations, ordinal, length, solo_ns, work = out
    if not length or not solo_ns:
        return None
    return Progress(iterations + min(1.0, ordinal / length), solo_ns, work / 1e6)


def peak_kinds(account: int) -> tuple[int, int, int] | None:
    """Persistent, activation and temporary bytes at the peak of the profiled iteration."""
    out = (ctypes.c_uint64 * 3)()
    if lib().gs_peak_kinds(account, out) != 0:
        return None
    return out[0], out[1], out[2]


def permit_set(account: int, after: int, ordinal: int, shift_ns: int) -> None:
    """`account` may start beside an iteration of `after` from its allocation `ordinal` on; `NEVER` and `BY_FORECAST`
    see `gpushare.h`."""
    lib().gs_permit_set(account, after, ordinal, shift_ns)


def order_set(order: str, quantum_ns: int) -> None:
    """Who goes first at the doors, one of `ORDERS`; where jobs take turns, one goes on for `quantum_ns`."""
    lib().gs_order_set(ORDERS[order], quantum_ns)


def rank_set(account: int, rank: int) -> None:
    """The job's place under the order "ranked": the lowest goes first."""
    lib().gs_rank_set(account, rank)


def decisions_start(descriptor: int) -> None:
    """Write a record of each wait to the file from now on (`telemetry/decisions.py`)."""
    lib().gs_decisions_start(descriptor)


def wait_change(seen: int, timeout_ns: int) -> int:
    """Version of what policies look at, once it differs from `seen` or the time is over."""
    version: int = lib().gs_wait_change(seen, timeout_ns)
    return version


def park_others(account: int, timeout_ns: int) -> bool:
    """Hold every other job at its door until `unpark_others`; False if one did not come in time."""
    return bool(lib().gs_park_others(account, timeout_ns))


def unpark_others(account: int) -> None:
    """Let the jobs go on that `park_others` holds."""
    lib().gs_unpark_others(account)


def owner(address: int) -> int:
    """Account that holds the address; -1 if it is not the pool's."""
    account: int = lib().gs_owner(address)
    return account


def graph_seen() -> bool:
    """Whether torch has numbered a node of an autograd graph through the shim."""
    return bool(lib().gs_graph_seen())


def allocate(count: int, account: int) -> int:
    """Address of a block of `count` bytes, more than zero, charged to `account`.

    :raises NativeError: out of memory, with the figures.
    """
    address: int | None = lib().gs_try_alloc(count, -1, account, 0, 0)
    if address is None:
        raise NativeError(last_error())
    return address


def free(address: int) -> None:
    """Give a block back."""
    lib().gs_free(address, -1, 0)


def trim(account: int) -> None:
    """Give back the pages of the account that hold no block."""
    lib().gs_trim(account)


def device() -> int:
    """Index of the GPU whose memory the pool is; -1 on the host."""
    index: int = lib().gs_device()
    return index


def stream_begin(account: int, stream: int) -> None:
    """The job may use the stream (a driver's handle) from now on: what it frees may still be in use there."""
    lib().gs_stream_begin(account, stream)


def stream_end(stream: int) -> None:
    """Before a stream is destroyed."""
    lib().gs_stream_end(stream)


def stream_account(stream: int) -> int:
    """The job that has begun the stream; 0 if none has."""
    account: int = lib().gs_stream_account(stream)
    return account


def thread_cuda_stream(stream: int) -> None:
    """What torch takes for the default stream in the calling thread (a driver's handle); 0: its own."""
    lib().gs_thread_cuda_stream(stream)


def thread_cuda_generator(generator: int) -> None:
    """What torch takes for the GPU's default generator in the calling thread; 0: its own."""
    lib().gs_thread_cuda_generator(generator or None)


def synchronize(account: int) -> None:
    """Wait until what the account has issued on its streams is done.

    :raises NativeError: in the driver's words.
    """
    if lib().gs_synchronize(account) != 0:
        raise NativeError(last_error())


@dataclass(frozen=True)
class PoolState:
    """The pool now."""

    held_bytes: int
    headroom_bytes: int
    shared_bytes: int
    budget_bytes: int
    free_ranges: int


def pool_state() -> PoolState:
    """Held by all, kept for overruns, held by nobody's job, the budget; ranges of free addresses."""
    out = (ctypes.c_uint64 * 5)()
    if lib().gs_pool_get(out) != 0:
        raise NativeError(last_error())
    return PoolState(*out)


def budget_set(budget_bytes: int) -> None:
    """Raise the budget now, or lower it as soon as the open iterations can end within the new one.

    :raises NativeError: less than the jobs need, or more than half the addresses that were reserved.
    """
    if lib().gs_budget_set(budget_bytes) != 0:
        raise NativeError(last_error())


def check() -> None:
    """Walk pool and heaps.

    :raises NativeError: an invariant does not hold.
    """
    if lib().gs_check() != 0:
        raise NativeError(last_error())
