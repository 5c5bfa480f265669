"""Calls into the shim: what is measured of iterations, and who may begin one."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from gpushare.native.library import Kind, NativeError, last_error, lib
from gpushare.native.permits import NativePermit

NO_LEASES, BY_CURVE = 0, 2**64 - 1  # as the size of a segment
ORDERS = {"fifo": 0, "fair": 1, "ranked": 2}


@dataclass(frozen=True)
class NativeCurve:
    """One iteration of a job: held bytes and nanoseconds since its door, by allocation ordinal; how long it takes."""

    held_bytes: list[int]
    time_ns: list[int]
    residue_bytes: int
    duration_ns: int
    version: int


@dataclass(frozen=True)
class NativeKind:
    """A kind of a job's iterations, its curve in steps (`gs_kind`): bytes, and nanoseconds since the start."""

    ordinals: list[int]
    held_bytes: list[int]
    time_ns: list[int]
    allocations: int
    residue_bytes: int
    duration_ns: int
    seen: int
    followed_by: list[int]


def kinds_get(account: int) -> list[NativeKind]:
    """Kinds of the job's iterations: those given, then in the order in which they came.

    Counts are those since the job began; a kind that has not come has the times that were given.
    """
    found = []
    for index in range(Kind.MOST):
        kind = Kind()
        if lib().gs_kind_get(account, index, ctypes.byref(kind)) != 0:
            break
        found.append(
            NativeKind(
                ordinals=kind.ordinal[: kind.steps],
                held_bytes=kind.held_bytes[: kind.steps],
                time_ns=kind.time_ns[: kind.steps],
                allocations=kind.allocations,
                residue_bytes=kind.residue_bytes,
                duration_ns=kind.duration_ns,
                seen=kind.seen,
                followed_by=list(kind.followed_by),
            )
        )
    return found


def kind_add(account: int, kind: NativeKind) -> None:
    """Give a kind of a saved profile, in their order, after `curve_set`.

    :raises NativeError: its steps are none of an iteration.
    """
    given = Kind(
        allocations=kind.allocations,
        residue_bytes=kind.residue_bytes,
        duration_ns=kind.duration_ns,
        seen=kind.seen,
        steps=len(kind.ordinals),
    )
    given.followed_by[: len(kind.followed_by)] = kind.followed_by
    for field in ("held_bytes", "time_ns"):
        getattr(given, field)[: len(kind.ordinals)] = getattr(kind, field)
    given.ordinal[: len(kind.ordinals)] = kind.ordinals
    if lib().gs_kind_add(account, ctypes.byref(given)) != 0:
        raise NativeError(last_error())


def curve_set(
    account: int, held: Sequence[int], time_ns: Sequence[int], residue_bytes: int, duration_ns: int
) -> None:
    """Give the curve of a saved profile, in bytes and nanoseconds by allocation ordinal, and how long it takes."""
    array = ctypes.c_uint64 * len(held)
    arrays = array(*held), array(*time_ns)
    if lib().gs_curve_set(account, *arrays, len(held), residue_bytes, duration_ns) != 0:
        raise NativeError(last_error())


def curve_get(account: int) -> NativeCurve | None:
    """What is known of the job's iterations; None before its profile."""
    capacity = 0
    about = (ctypes.c_uint64 * 3)()
    while True:
        array = ctypes.c_uint64 * max(capacity, 1)
        held, time_ns = array(), array()
        length: int = lib().gs_curve_get(account, held, time_ns, capacity, about)
        if length == 0:
            return None
        if length <= capacity:
            residue_bytes, duration_ns, version = about
            return NativeCurve(held[:length], time_ns[:length], residue_bytes, duration_ns, version)
        capacity = length


def curve_version(account: int) -> int | None:
    """Of the job's curve, which differs once the curve has changed; None before its profile."""
    about = (ctypes.c_uint64 * 3)()
    return about[2] if lib().gs_curve_get(account, None, None, 0, about) else None


def profiled_log(account: int) -> bytes:
    """Records of the job's profiled iteration (`telemetry/allocation_log.py`); empty before it has ended."""
    records = ctypes.create_string_buffer(lib().gs_profiled_log(account, None, 0))
    count: int = lib().gs_profiled_log(account, records, len(records))
    return records.raw[:count]


@dataclass(frozen=True)
class Progress:
    """What a job has done, the part of the open iteration included.

    `iterations` as they are counted; `work` since the profile, each iteration as long as its kind is against the
    profiled one, which takes `solo_ns` alone and `now_ns` now (0: none has come yet). `usual`: the most bytes that
    iterations hold, and how often they allocate, of the kinds that come often. `waits`: a thread of the job does, at a
    door, for memory or to fork.
    """

    iterations: float
    solo_ns: int
    work: float
    now_ns: int = 0
    usual: tuple[int, int] = (0, 0)
    waits: bool = False


PROGRESS_FIGURES = 9


def progress(account: int) -> Progress | None:
    """How far the job has come; None before its profile."""
    out = (ctypes.c_uint64 * PROGRESS_FIGURES)()
    if lib().gs_progress_get(account, out) != 0:
        raise NativeError(last_error())
    return of_figures(list(out))


def of_figures(figures: Sequence[int]) -> Progress | None:
    """As the shim tells them; None before the job's profile."""
    iterations, ordinal, length, solo_ns, work, now_ns, usual_bytes, usual_allocations, waits = figures
    if not length or not solo_ns:
        return None
    begun = min(1.0, ordinal / length)
    usual = usual_bytes, usual_allocations
    return Progress(iterations + begun, solo_ns, work / 1e6, now_ns, usual, bool(waits))


def peak_kinds(account: int) -> tuple[int, int, int] | None:
    """Persistent, activation and temporary bytes at the peak of the profiled iteration."""
    out = (ctypes.c_uint64 * 3)()
    if lib().gs_peak_kinds(account, out) != 0:
        return None
    return out[0], out[1], out[2]


def permits_set(permits: Sequence[NativePermit]) -> None:
    """Publish them all at once; pairs of which none speaks keep their permit."""
    lib().gs_permits_set((NativePermit * len(permits))(*permits), len(permits))


def order_set(order: str, quantum_ns: int) -> None:
    """Who goes first at the doors, one of `ORDERS`; where jobs take turns, one goes on for `quantum_ns`."""
    lib().gs_order_set(ORDERS[order], quantum_ns)


def rank_set(account: int, rank: int) -> None:
    """The job's place under the order "ranked": the lowest goes first."""
    lib().gs_rank_set(account, rank)


def aside_set(accounts: Iterable[int]) -> None:
    """These start no iterations for now, and what they hold is copied out at their doors; all others may."""
    lib().gs_aside_set(as_bits(accounts))


def copied_out() -> list[int]:
    """Accounts whose memory is away: copied out, or set aside with nothing that could be."""
    return of_bits(lib().gs_copied_out())


def as_bits(accounts: Iterable[int]) -> int:
    """Bit i is account i."""
    return sum(1 << account for account in set(accounts))


def of_bits(bits: int) -> list[int]:
    """See `as_bits`."""
    return [i for i in range(bits.bit_length()) if bits >> i & 1]


def split_set(split_bytes: int) -> None:
    """Leases for segments in which so much is allocated or freed.

    `NO_LEASES`, or `BY_CURVE`: a 16th of what the job's iteration holds beyond its residue.
    """
    lib().gs_split_set(split_bytes)


def decisions_start(descriptor: int) -> None:
    """Write a record of each wait to the file from now on (`telemetry/decisions.py`)."""
    lib().gs_decisions_start(descriptor)


def wait_change(seen: int, timeout_ns: int) -> int:
    """Version of what policies look at, once it differs from `seen` or the time is over."""
    version: int = lib().gs_wait_change(seen, timeout_ns)
    return version
