"""What a job takes of the cores and of its Python thread, by the CPU clocks at the ends of its iterations.

Looked at are the first iterations past the warm-up. The clock of the process counts all its threads, those of OpenMP
too, so it is the job's only while no other job is there. The clock of the thread that runs the script is the job's
always; the GIL is held for a part of that time, so it is an upper bound of the job's share of the GIL.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from itertools import pairwise

from gpushare.isolation.context import JobContext

_WARM_UP, _ITERATIONS = 1, 3


@dataclass(frozen=True)
class Mark:
    """The clocks at the end of an iteration, in nanoseconds."""

    wall_ns: int
    thread_ns: int
    process_ns: int


@dataclass
class _Seen:
    alone: bool
    marks: list[Mark] = field(default_factory=list)
    passed: int = 0


@dataclass(frozen=True)
class Shares:
    """Of a job's solo iterations: the shortest in seconds, cores kept busy, and the Python thread's share of a core.

    The first two are None while other jobs were in the process.
    """

    iteration_s: float | None
    cores_busy: float | None
    python_share: float


_seen: dict[int, _Seen] = {}
_lock = threading.Lock()


def begin(job: JobContext) -> None:
    """A job is there."""
    with _lock:
        for seen in _seen.values():
            seen.alone = False
        _seen[job.account] = _Seen(alone=not _seen)


def note(job: JobContext) -> None:
    """An iteration of the job ended in the calling thread."""
    seen = _seen[job.account]
    if len(seen.marks) > _ITERATIONS or threading.get_ident() != job.thread_ident:
        return
    seen.passed += 1
    if seen.passed >= _WARM_UP:
        seen.marks.append(Mark(time.monotonic_ns(), time.thread_time_ns(), time.process_time_ns()))


def of(job: JobContext, solo_ns: int) -> Shares | None:
    """What was seen; None before the first solo iteration has ended.

    :param solo_ns: the profiled iteration, without waiting.
    """
    seen = _seen.get(job.account)
    return shares(seen.marks, solo_ns, alone=seen.alone) if seen else None


def shares(marks: list[Mark], solo_ns: int, *, alone: bool) -> Shares | None:
    """From the clocks at the ends of iterations, the first of which is the last one of the warm-up."""
    if len(marks) < 2 or solo_ns <= 0:
        return None
    first = marks[0]
    if not alone:  # the second iteration ran alone; between it and the next this one may have waited
        return Shares(None, None, min(1.0, (marks[1].thread_ns - first.thread_ns) / solo_ns))
    last = marks[-1]
    wall_ns = max(1, last.wall_ns - first.wall_ns)
    return Shares(
        iteration_s=min(after.wall_ns - before.wall_ns for before, after in pairwise(marks)) / 1e9,
        cores_busy=(last.process_ns - first.process_ns) / wall_ns,
        python_share=min(1.0, (last.thread_ns - first.thread_ns) / wall_ns),
    )
