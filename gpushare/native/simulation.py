"""The shim's governor under a virtual clock, for the simulator: its doors, permits, safety check and waits."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from enum import IntEnum

from gpushare.native import library
from gpushare.native.doors import ORDERS, PROGRESS_FIGURES, Progress, as_bits, of_bits, of_figures
from gpushare.native.library import NativeError, lib
from gpushare.native.permits import NativePermit
from gpushare.native.shim import POLICIES, PoolState

_NEVER = 2**64 - 1


class Answer(IntEnum):
    """What becomes of a step."""

    GOES_ON = 0
    WAITS = 1
    REFUSED = 2


@dataclass(frozen=True)
class JobCounters:
    """A simulated job as the governor counts it: bytes, nanoseconds and numbers."""

    held_bytes: int
    iterations: int
    ordinal: int
    curve_length: int
    solo_ns: int
    door_wait_ns: int
    memory_wait_ns: int
    memory_waits: int
    overruns: int
    refusals: int
    copies_out: int
    shift_sum_ns: int
    shift_count: int
    curve_version: int
    most_passed: (
        int  # iterations that one other job began while this one waited at a door, not for a third one's turn
    )
    leases: int  # that it was given


NOTHING_YET = JobCounters(*[0] * len(fields(JobCounters)))  # of a job that the governor does not know


@dataclass(frozen=True)
class GovernorCurve:
    """What the governor knows of a job's iterations: bytes and nanoseconds by allocation ordinal."""

    held_bytes: list[int]
    time_ns: list[int]
    residue_bytes: int
    duration_ns: int


class SimulatedGovernor:
    """One governor of its own. Times are nanoseconds of its virtual clock, sizes are bytes.

    A job that was told to wait does nothing until `ready` names it and `look` has answered.

    :raises NativeError: the arguments are out of range.
    """

    def __init__(self, *, policy: str, page_bytes: int, budget_bytes: int) -> None:
        library.load()
        self._shim = lib()
        self._page_bytes = page_bytes
        self._handle: int | None = self._shim.gs_sim_begin(POLICIES[policy], page_bytes, budget_bytes)
        if self._handle is None:
            raise NativeError(
                f"a simulation needs a budget of at least a page, but got {budget_bytes} bytes "
                f"in pages of {page_bytes}"
            )

    def __enter__(self) -> SimulatedGovernor:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Give back what it took from the system."""
        if self._handle is not None:
            self._shim.gs_sim_end(self._handle)
            self._handle = None

    def set_time(self, now_ns: int) -> None:
        """The clock's next value; it never goes back."""
        self._shim.gs_sim_time(self._handle, now_ns + 1)  # 0 stands for never there

    def job_begin(
        self, held_bytes: Sequence[int], time_ns: Sequence[int], residue_bytes: int, duration_ns: int = 0
    ) -> int:
        """A job with the curve of its profile; with an empty one it is measured first. Its account.

        :param duration_ns: of an iteration; it lasts until its last allocation at least.

        :raises NativeError: there are 63 jobs already.
        """
        array = ctypes.c_uint64 * max(1, len(held_bytes))
        account: int = self._shim.gs_sim_job_begin(
            self._handle, array(*held_bytes), array(*time_ns), len(held_bytes), residue_bytes, duration_ns
        )
        if account < 0:
            raise NativeError("too many jobs: a host runs at most 63")
        return account

    def hold(self, account: int, held_bytes: int) -> Answer:
        """The job's next allocation, or what it frees, makes it hold so much."""
        return Answer(self._shim.gs_sim_hold(self._handle, account, held_bytes))

    def free(self, account: int, held_bytes: int) -> None:
        """Frees until it holds no more than this; no allocation of the iteration."""
        self._shim.gs_sim_free(self._handle, account, held_bytes)

    def door(self, account: int) -> Answer:
        """The job's set-up or iteration ended; the next iteration is at the door."""
        return Answer(self._shim.gs_sim_door(self._handle, account))

    def look(self, account: int) -> Answer:
        """Whether a job that waits still does."""
        return Answer(self._shim.gs_sim_look(self._handle, account))

    def ready(self) -> list[int]:
        """Accounts that waited and do no longer; `look` says how it ended."""
        return of_bits(self._shim.gs_sim_ready(self._handle))

    def refusal(self) -> str:
        """Why the last one was refused, with the figures."""
        text: bytes = self._shim.gs_sim_refusal(self._handle)
        return text.decode()

    def job_end(self, account: int) -> None:
        """The job is over: all that it holds comes back."""
        self._shim.gs_sim_job_end(self._handle, account)

    def tick(self) -> None:
        """What the sampler does every 10 ms: doors that progress alone has opened, and wedges."""
        self._shim.gs_sim_tick(self._handle)

    def look_at_doors(self) -> None:
        """What the sampler does when a start is planned."""
        self._shim.gs_sim_look_at_doors(self._handle)

    def next_look_ns(self) -> int | None:
        """When a start is planned for though nothing else may happen then; None if no job waits for its moment."""
        at_ns: int = self._shim.gs_sim_next_look(self._handle)
        return None if at_ns == _NEVER else at_ns - 1  # as in `set_time`

    def version(self) -> int:
        """Rises when something changed that policies look at."""
        version: int = self._shim.gs_sim_version(self._handle)
        return version

    def set_budget(self, budget_bytes: int) -> None:
        """Raise the budget, or lower it as soon as that can be.

        :raises NativeError: less than the jobs need.
        """
        why: bytes = self._shim.gs_sim_budget(self._handle, budget_bytes)
        if why:
            raise NativeError(why.decode())

    def permits(self, permits: Sequence[NativePermit]) -> None:
        """Publish them, as `doors.permits_set` does."""
        self._shim.gs_sim_permits(self._handle, (NativePermit * len(permits))(*permits), len(permits))

    def order(self, order: str, quantum_ns: int) -> None:
        """Who goes first at the doors, as `doors.order_set` says."""
        self._shim.gs_sim_order(self._handle, ORDERS[order], quantum_ns)

    def rank(self, account: int, rank: int) -> None:
        """The job's place under the order "ranked"."""
        self._shim.gs_sim_rank(self._handle, account, rank)

    def aside(self, accounts: Iterable[int]) -> None:
        """Jobs that start no iterations for now, as `doors.aside_set` says."""
        self._shim.gs_sim_aside(self._handle, as_bits(accounts))

    def copied_out(self) -> list[int]:
        """Accounts whose memory is away, as `doors.copied_out` says."""
        return of_bits(self._shim.gs_sim_copied_out(self._handle))

    def split(self, split_bytes: int) -> None:
        """Leases by segment, as `doors.split_set` says."""
        self._shim.gs_sim_split(self._handle, split_bytes)

    def curve(self, account: int) -> GovernorCurve | None:
        """What is known of the job's iterations; None before its profile."""
        capacity, about = self.job(account).curve_length, (ctypes.c_uint64 * 2)()
        if capacity == 0:
            return None
        array = ctypes.c_uint64 * capacity
        held, time_ns = array(), array()
        self._shim.gs_sim_curve(self._handle, account, held, time_ns, capacity, about)
        return GovernorCurve(list(held), list(time_ns), *about)

    def job(self, account: int) -> JobCounters:
        """Its counters so far."""
        out = (ctypes.c_uint64 * 16)()
        if self._shim.gs_sim_job_get(self._handle, account, out) != 0:
            raise NativeError(f"there is no job {account}")
        return JobCounters(*out)

    def progress(self, account: int) -> Progress | None:
        """As `doors.progress`."""
        out = (ctypes.c_uint64 * PROGRESS_FIGURES)()
        if self._shim.gs_sim_progress_get(self._handle, account, out) != 0:
            raise NativeError(f"there is no job {account}")
        return of_figures(list(out))

    def pool(self) -> PoolState:
        """The pool now."""
        out = (ctypes.c_uint64 * 7)()
        self._shim.gs_sim_pool_get(self._handle, out)
        return PoolState(*out)

    def check(self) -> None:
        """Walk accounts and pool.

        :raises NativeError: an invariant does not hold.
        """
        wrong: bytes = self._shim.gs_sim_check(self._handle)
        if wrong:
            raise NativeError(wrong.decode())


def is_safe(open_iterations: Sequence[tuple[int, int, int]], available: int) -> bool:
    """The banker's check: can all of these (held, claim, residue) end, with `available` pages that nobody holds?"""
    library.load()
    array = ctypes.c_uint64 * max(1, len(open_iterations))
    columns = [array(*(o[i] for o in open_iterations)) for i in range(3)]
    answer: int = lib().gs_is_safe(*columns, len(open_iterations), available)
    if answer < 0:
        raise NativeError(f"at most 64 iterations can be open, but got {len(open_iterations)}")
    return bool(answer)


def fits_together(newcomer: GovernorCurve, running: Sequence[tuple[GovernorCurve, int]], room: int) -> bool:
    """The forecast by itself: does an iteration that starts now fit with those that have made so many allocations?

    Sizes of the curves and `room` are pages here.
    """
    library.load()
    curves = [newcomer, *(curve for curve, _ in running)]
    held = [pages for curve in curves for pages in curve.held_bytes]
    times = [time for curve in curves for time in curve.time_ns]
    u64, count = ctypes.c_uint64, len(curves)
    answer: int = lib().gs_fits_together(
        (ctypes.c_uint32 * len(held))(*held),
        (u64 * len(times))(*times),
        (u64 * count)(*(len(curve.held_bytes) for curve in curves)),
        (u64 * count)(*(curve.residue_bytes for curve in curves)),
        (ctypes.c_uint32 * count)(*(at for _, at in running)),
        len(running),
        room,
    )
    return bool(answer)
