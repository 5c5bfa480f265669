"""Calls into the shim: the pool, jobs and their threads, iterations."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from gpushare.native.library import Config, NativeError, last_error, lib, quick

UNMANAGED, TEMPORAL, ZICO = 0, 1, 2
# What the shim does under each policy, by its name. Where sharing is planned the doors are Zico's: they open where a
# permit says so, and the permits are the policy's.
_PLANNED = dict.fromkeys(("greedy", "zico", "waterwave", "auto"), ZICO)
POLICIES = {"unmanaged": UNMANAGED, "temporal": TEMPORAL, **_PLANNED}
HOST, CUDA = 0, 1
NO_JOB = 64  # an account of switches that no job has (GS_MAX_ACCOUNTS)


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
    """Make the pool. `address_bytes` 0 reserves sixteen budgets of address space, 256 regions at least.

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


@dataclass(frozen=True)
class Stranded:
    """A job that was copied out and has no room to come back beside what ended jobs and libraries keep."""

    for_s: float
    copied_out_bytes: int
    kept_bytes: int
    budget_bytes: int
    needs_bytes: int  # a budget of so much would do


def stranded(account: int) -> Stranded | None:
    """What keeps the job from its memory for good, unless the budget grows; None if it may come back."""
    out = (ctypes.c_uint64 * 5)()
    if not lib().gs_stranded(account, out):
        return None
    return Stranded(out[0] / 1e9, *out[1:])


def abandon(account: int) -> bool:
    """End such a job, whose threads never go on; False if it can come back after all."""
    return bool(lib().gs_abandon(account))


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
    """End the job's waits, now and until `uncancel`: those for memory in an error where it does not fit at once."""
    lib().gs_cancel(account)


def uncancel(account: int) -> None:
    """The job waits again."""
    lib().gs_uncancel(account)


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


def iteration_door() -> None:
    """Where an iteration of the calling thread's job has ended, wait until the next one may begin.

    :raises NativeError: it can't, beside what the others keep; with the figures of an out-of-memory.
    """
    if lib().gs_iteration_door() != 0:
        raise NativeError(last_error())


def park_others(account: int, timeout_ns: int) -> bool:
    """Hold every other job at its door until `unpark_others`; False if one did not come in time."""
    return bool(lib().gs_park_others(account, timeout_ns))


@contextmanager
def awaiting_fork(account: int) -> Iterator[None]:
    """In it the job counts as parked: it is about to fork, and waits until no other job does."""
    lib().gs_await_fork(account, 1)
    try:
        yield
    finally:
        lib().gs_await_fork(account, 0)


def tell_of_process(account: int) -> None:
    """The job starts a process: what that takes is work of its own (`shim/src/iteration_kinds.h`)."""
    for waits in (1, 0):
        lib().gs_await_fork(account, waits)


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
    cuts_given_up: int
    cut_needs_bytes: int

    @property
    def for_jobs_bytes(self) -> int:
        """Of the budget, what jobs may hold together."""
        return self.budget_bytes - self.headroom_bytes - self.shared_bytes


def pool_state() -> PoolState:
    """Held by all, kept for overruns, held by nobody's job, the budget; ranges of free addresses; how many smaller
    budgets were taken back since jobs had come to need more, and how much that was the last time."""
    out = (ctypes.c_uint64 * 7)()
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
