"""What a policy sees: frozen, without clocks that run and without anything to call."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from gpushare.scheduling.groups import Groups

TURNS = "temporal"  # the mode in which one job's iterations run at a time
GROUPS = "groups"  # the mode in which those of a group take turns, and groups run side by side
FEWER = "fewer"  # the mode in which some jobs are set aside, and the others run side by side
SELDOM = 1 / 32  # of an iteration: allocations that lie further apart do not name a moment
_IN_TIME = 64  # pieces, at most


@dataclass(frozen=True)
class IterationCurve:
    """Bytes held after each step of an iteration, `time_s` seconds after its start.

    `ordinals[i]` is the allocation at which step i happens, of `allocations` in the whole iteration. Steps are in
    order; between two of them the job holds at most the larger one.
    """

    ordinals: tuple[int, ...]
    held_bytes: tuple[int, ...]
    time_s: tuple[float, ...]
    duration_s: float
    residue_bytes: int
    allocations: int

    @property
    def peak_bytes(self) -> int:
        """The most that the iteration holds."""
        return max((*self.held_bytes, self.residue_bytes))


@dataclass(frozen=True)
class JobState:
    """A job as a policy sees it. `curve` is None before its profile."""

    account: int
    curve: IterationCurve | None


@dataclass(frozen=True)
class Snapshot:
    """All jobs that have not ended, and what they share.

    `reserved_bytes` of the budget are not for planned iterations: the headroom, and what no job owns.
    `mode`: the policy that permits come from, of those that the policy may choose among (`pace`); None: it has not
    been chosen. `groups`: accounts that take turns with each other, in the mode of that name.
    `aside`: accounts that run no iterations, in the mode FEWER.
    `split_bytes`: what is allocated or freed in a segment (`waterwave`); None: starts lie anywhere.
    """

    budget_bytes: int
    jobs: tuple[JobState, ...]
    reserved_bytes: int = 0
    mode: str | None = None
    split_bytes: int | None = None
    groups: Groups = ()
    aside: frozenset[int] = frozenset()

    @property
    def here(self) -> Snapshot:
        """Without the jobs that are set aside."""
        if not self.aside:
            return self
        return self.of([job.account for job in self.jobs if job.account not in self.aside])

    def of(self, accounts: Collection[int]) -> Snapshot:
        """As if only these jobs were there."""
        return replace(self, jobs=tuple(job for job in self.jobs if job.account in accounts))

    @property
    def take_turns(self) -> bool:
        """Whether side by side the jobs are slower than one after the other."""
        return self.mode == TURNS

    def apart(self, account: int, other: int) -> bool:
        """Whether both are of a group that takes turns."""
        return self.mode == GROUPS and any(account in group and other in group for group in self.groups)


@dataclass(frozen=True)
class Permit:
    """`account` may start beside an iteration of `after` once that has made so many allocations.

    `allocations` None: not while that iteration runs. `shift_s`: the forecast time shift. `by_forecast`: and only
    where it is forecast to fit with all that run then, not with `after` alone; the shim looks at that when the job is
    at its door.
    """

    account: int
    after: int
    allocations: int | None
    shift_s: float
    by_forecast: bool = False


class MeasuredCurve(Protocol):
    """What the shim knows of a job's iterations: bytes and nanoseconds, by allocation."""

    @property
    def held_bytes(self) -> Sequence[int]: ...
    @property
    def time_ns(self) -> Sequence[int]: ...
    @property
    def residue_bytes(self) -> int: ...
    @property
    def duration_ns(self) -> int: ...


def from_measured(curve: MeasuredCurve) -> IterationCurve:
    """As policies see it."""
    time_s = [t / 1e9 for t in curve.time_ns]
    return compress(curve.held_bytes, time_s, curve.residue_bytes, duration_s=curve.duration_ns / 1e9)


def compress(
    held_bytes: Sequence[int],
    time_s: Sequence[float],
    residue_bytes: int,
    steps: int = 256,
    *,
    duration_s: float = 0.0,
) -> IterationCurve:
    """Cut a curve of any length to at most `steps` pieces, each with the most that it holds.

    `duration_s`: of the iteration, whose end comes with its last allocation or later.

    A piece ends where what is held has moved away from the piece's beginning, so that long flat stretches
    cost one piece and steep ones stay sharp. Where `steps` has room for it no piece lasts longer than a 32nd of the
    iteration, but for one of a single allocation: so each moment is known by how many allocations came before it.
    """
    duration_s = max(duration_s, time_s[-1] if time_s else 0.0)
    in_time = _by_time(time_s, duration_s) if time_s and steps >= 2 * _IN_TIME else set()
    starts = sorted(in_time.union(_cuts(held_bytes, steps - len(in_time))))
    ends = [*starts[1:], len(held_bytes)]
    return IterationCurve(
        ordinals=tuple(starts),
        held_bytes=tuple(max(held_bytes[i:j]) for i, j in zip(starts, ends, strict=True)),
        time_s=tuple(time_s[i] for i in starts),
        duration_s=duration_s,
        residue_bytes=residue_bytes,
        allocations=len(held_bytes),
    )


def _by_time(time_s: Sequence[float], duration_s: float) -> set[int]:
    """The allocations at either side of each moment at which another part of the time begins."""
    found: set[int] = set()
    for part in range(1, round(1 / SELDOM)):
        after = bisect_left(time_s, part * SELDOM * duration_s)
        found |= {max(0, after - 1), min(after, len(time_s) - 1)}
    return found


def _cuts(held_bytes: Sequence[int], steps: int) -> list[int]:
    stride = -(-len(held_bytes) // (16 * steps)) or 1  # bounds the work for curves of a million points
    peak = max(held_bytes, default=0)
    tolerance = peak / (2 * steps)
    while True:
        starts: list[int] = []
        for i in range(0, len(held_bytes), stride):
            if not starts or abs(held_bytes[i] - held_bytes[starts[-1]]) > tolerance:
                starts.append(i)
        if len(starts) <= steps:
            return starts
        tolerance *= 1.5
