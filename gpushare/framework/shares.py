"""What a job takes of the cores and of its Python thread, by the CPU clocks at the ends of its iterations.

Looked at are the first iterations past the warm-up, for a second: what disturbs a machine for a moment, and caches that
are cold yet, would else be a short iteration's time. The clock of the process counts all its threads, those of OpenMP
too, so it is the job's only while no other job is there. The clock of the thread that runs the script is the job's
always; the GIL is held for a part of that time, so it is an upper bound of the job's share of the GIL.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from itertools import pairwise

from gpushare.isolation.context import JobContext

_WARM_UP, _LEAST, _MOST = 1, 3, 64
_FOR_NS = 10**9


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
    """Of a job's solo iterations: seconds of a short one, cores kept busy, the Python thread's share of a core.

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
    if _enough(seen.marks) or threading.get_ident() != job.thread_ident:
        return
    seen.passed += 1
    if seen.passed >= _WARM_UP:
        seen.marks.append(Mark(time.monotonic_ns(), time.thread_time_ns(), time.process_time_ns()))


def enough(job: JobContext) -> bool:
    """Whether no more will be looked at."""
    return _enough(_seen[job.account].marks)


def _enough(marks: list[Mark]) -> bool:
    if len(marks) <= _LEAST:
        return False
    return len(marks) > _MOST or marks[-1].wall_ns - marks[0].wall_ns >= _FOR_NS


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
    times_ns = sorted(after.wall_ns - before.wall_ns for before, after in pairwise(marks))
    return Shares(
        # Not the shortest of many: that may be the short batch at an epoch's end.
        iteration_s=times_ns[len(times_ns) // 4] / 1e9,
        cores_busy=(last.process_ns - first.process_ns) / wall_ns,
        python_share=min(1.0, (last.thread_ns - first.thread_ns) / wall_ns),
    )
