"""What a job takes of time and cores, by the clocks at the ends of its iterations.

Looked at are the first iterations past the warm-up, for a second: what disturbs a machine for a moment, and caches that
are cold yet, would else be a short iteration's time. The clock of the process counts all its threads, those of OpenMP
too, so it is the job's only while no other job is there.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import fmean

from gpushare.isolation import interrupts
from gpushare.isolation.context import JobContext

_WARM_UP, _LEAST, _MOST = 1, 3, 64
_FOR_NS = 10**9
SPREAD = 8


@dataclass(frozen=True)
class Mark:
    """The clocks at the end of an iteration, in nanoseconds."""

    wall_ns: int
    process_ns: int


@dataclass
class _Seen:
    alone: bool
    marks: list[Mark] = field(default_factory=list)
    passed: int = 0


@dataclass(frozen=True)
class Shares:
    """Of a job's solo iterations: seconds of a short one, and cores kept busy.

    `spread`: by what factors they take longer than the short one, the means of at most `SPREAD` parts with as many
    iterations in each, in rising order.
    """

    iteration_s: float
    cores_busy: float
    spread: tuple[float, ...]


_seen: dict[int, _Seen] = {}
_lock = interrupts.whole(threading.Lock())


def begin(job: JobContext) -> None:
    """A job is there."""
    with _lock:
        for seen in _seen.values():
            seen.alone = False
        _seen[job.account] = _Seen(alone=not _seen)


def note(job: JobContext) -> None:
    """An iteration of the job ended in the calling thread."""
    seen = _seen[job.account]
    if _enough(seen.marks) or threading.get_ident() != job.thread_ident:
        return
    seen.passed += 1
    if seen.passed >= _WARM_UP:
        seen.marks.append(Mark(time.monotonic_ns(), time.process_time_ns()))


def enough(job: JobContext) -> bool:
    """Whether no more will be looked at."""
    return _enough(_seen[job.account].marks)


def _enough(marks: list[Mark]) -> bool:
    if len(marks) <= _LEAST:
        return False
    return len(marks) > _MOST or marks[-1].wall_ns - marks[0].wall_ns >= _FOR_NS


def of(job: JobContext) -> Shares | None:
    """What was seen; None before the first solo iteration has ended, and where another job was there."""
    seen = _seen.get(job.account)
    return shares(seen.marks) if seen and seen.alone else None


def shares(marks: list[Mark]) -> Shares | None:
    """From the clocks at the ends of iterations, the first of which is the last one of the warm-up."""
    if len(marks) < 2:
        return None
    first, last = marks[0], marks[-1]
    times_ns = sorted(after.wall_ns - before.wall_ns for before, after in pairwise(marks))
    short_ns = times_ns[len(times_ns) // 4]  # not the shortest: that may be the small batch at an epoch's end
    return Shares(
        iteration_s=short_ns / 1e9,
        cores_busy=(last.process_ns - first.process_ns) / max(1, last.wall_ns - first.wall_ns),
        spread=_spread(times_ns, short_ns),
    )


def _spread(times_ns: list[int], short_ns: int) -> tuple[float, ...]:
    parts = min(SPREAD, len(times_ns))
    bounds = [len(times_ns) * part // parts for part in range(parts + 1)]
    return tuple(fmean(times_ns[begin:end]) / max(1, short_ns) for begin, end in pairwise(bounds))
