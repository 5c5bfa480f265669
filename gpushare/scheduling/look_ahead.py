"""What permits will yield if every iteration is as measured: a coarse look ahead.

All jobs begin at once and go on for some iterations of the longest, in small equal steps of time. A door opens as the
shim's does: where each open iteration has come to the point that a permit names, all of them together are forecast to
fit with the newcomer if a permit asks for that, and nobody who asked earlier has been passed already. An iteration
whose next bytes have no room stands still, and all doors stay shut. Contention is left out: it is what measuring finds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from gpushare.scheduling.snapshot import IterationCurve, Permit

_STEPS = 48  # in the longest iteration
_BEFORE, _COUNTED = 2, 6  # longest iterations, first to get into step
_EDGE = 1e-6  # of a step: times are not exact


def rates_of(
    permits: Sequence[Permit], accounts: Sequence[int], curves: Sequence[IterationCurve], room_bytes: int
) -> list[float]:
    """Solo seconds that each job does per second under these permits; a pair without one starts whenever it fits."""
    if not curves:
        return []
    step_s = max(curve.duration_s for curve in curves) / _STEPS
    ahead = _LookAhead(permits, accounts, curves, room_bytes, step_s)
    for _ in range(_BEFORE * _STEPS):
        ahead.advance()
    before = ahead.steps_done()
    for _ in range(_COUNTED * _STEPS):
        ahead.advance()
    return [(done - d) / (_COUNTED * _STEPS) for done, d in zip(ahead.steps_done(), before, strict=True)]


def _held_in_steps(curve: IterationCurve, step_s: float) -> list[int]:
    """The most that an iteration holds in each step of time: what it holds for a moment counts."""
    ends = [*curve.time_s[1:], curve.duration_s]
    held = [curve.residue_bytes] * max(1, round(curve.duration_s / step_s))
    for held_bytes, begin_s, end_s in zip(curve.held_bytes, curve.time_s, ends, strict=True):
        first, last = int(begin_s / step_s + _EDGE), math.ceil(end_s / step_s - _EDGE)
        for step in range(min(first, len(held) - 1), min(max(last, first + 1), len(held))):
            held[step] = max(held[step], held_bytes)
    return held


@dataclass
class _Job:
    """In step `at` of its iteration; None: at its door, where `passed` others have started since it came."""

    curve: IterationCurve
    held_in: list[int]
    shifts: dict[int, float]  # by index of the job that runs: how many steps far that must be
    by_forecast: bool = False
    at: int | None = None
    passed: int = 0
    steps_done: int = 0

    def held(self, at: int | None) -> int:
        if at is None or at >= len(self.held_in):
            return self.curve.residue_bytes
        return self.held_in[at]


class _LookAhead:
    """All jobs, a step of time after the other."""

    def __init__(
        self,
        permits: Sequence[Permit],
        accounts: Sequence[int],
        curves: Sequence[IterationCurve],
        room_bytes: int,
        step_s: float,
    ) -> None:
        index = {account: i for i, account in enumerate(accounts)}
        self._jobs = [_Job(curve, _held_in_steps(curve, step_s), {}) for curve in curves]
        for p in permits:
            job = self._jobs[index[p.account]]
            job.by_forecast |= p.by_forecast
            if p.allocations != 0:
                job.shifts[index[p.after]] = math.inf if p.allocations is None else p.shift_s / step_s - _EDGE
        self._room_bytes = room_bytes
        self._queue = list(self._jobs)  # at their doors, in the order in which they came
        self._running: list[_Job] = []  # in the order in which they started
        self._held = sum(job.held(None) for job in self._jobs)
        self._waits = False  # an iteration for room: it comes before all doors

    def steps_done(self) -> list[int]:
        """By each job so far."""
        return [job.steps_done for job in self._jobs]

    def advance(self) -> None:
        """One step."""
        if not self._waits:
            self._open_doors()
        moved = [job for job in self._running if self._move(job)]
        self._waits = len(moved) < len(self._running)
        if self._running and not moved:
            self._move(self._running[0], always=True)  # the shim would not let it come so far
        for job in [job for job in self._running if job.at is None]:
            self._running.remove(job)
            self._queue.append(job)

    def _open_doors(self) -> None:
        for job in list(self._queue):
            past = all(self._is_past(other, shift) for other, shift in job.shifts.items())
            if past and (not job.by_forecast or self._fits(job)):
                for earlier in self._queue[: self._queue.index(job)]:
                    earlier.passed += 1
                self._queue.remove(job)
                self._running.append(job)
                self._go_to(job, 0)
            elif job.passed:
                return

    def _fits(self, newcomer: _Job) -> bool:
        """Whether it stays with all that run within the room to its end (`shim/src/forecast.cpp`)."""
        at_doors = sum(j.curve.residue_bytes for j in self._jobs if j.at is None and j is not newcomer)
        for ahead in range(len(newcomer.held_in)):
            running = sum(job.held(job.at + ahead) for job in self._running if job.at is not None)
            if at_doors + running + newcomer.held(ahead) > self._room_bytes:
                return False
        return True

    def _is_past(self, other: int, shift: float) -> bool:
        at = self._jobs[other].at
        return at is None or at >= shift

    def _move(self, job: _Job, *, always: bool = False) -> bool:
        then = (job.at or 0) + 1
        more = job.held(then) - job.held(job.at)
        if more > 0 and self._held + more > self._room_bytes and not always:
            return False
        job.steps_done += 1  # of a short one several iterations end in a step
        if then < len(job.held_in):
            self._go_to(job, then)
        else:
            self._go_to(job, None)
            job.passed = 0
        return True

    def _go_to(self, job: _Job, at: int | None) -> None:
        self._held += job.held(at) - job.held(job.at)
        job.at = at
