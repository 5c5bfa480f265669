"""What a job takes and feels of what all jobs share, measured beside companions of ours, once its profile is stable.

First the GIL: a thread looks now and then whether anybody holds it. Then memory bandwidth, as in Bubble-Up (Mars et
al., MICRO 2011): a thread copies memory as fast as it can. By what share of itself an iteration then takes longer is
the job's `sensitivity`; by what share the copying does, of what it does beside a second thread that copies, is its
`pressure`. Beside another job this one then takes longer by its sensitivity times the other's pressure. The cores
have a part in that once more of them are wanted than there are, so it is measured where the job leaves one free.

A machine's pace wanders by more than that, so all four (job, job and copy, copy, two copies) come in short turns, the
job waiting at its mark in two of them, and the median of the turns counts. Where iterations of several kinds come in
turns themselves, or take seconds, bandwidth is not measured.
"""

from __future__ import annotations

import os
import queue
import threading
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from statistics import median
from typing import Any

import psutil

from gpushare.native import companions as native

_GIL_NS, _LEAST_LOOKS = 10**9, 50
_ROUNDS, _LEAST_ROUNDS, _ROUNDS_NS = 15, 3, 6 * 10**9  # no more than the least once that time has passed
_BLOCK_NS = 100 * 10**6  # of a turn of the job
_SHORT_S, _LONGEST_S = 0.5, 2.0  # of shorter iterations a turn has two; longer ones have no turns
_COPY_S = 0.03
_FREE_CORE = 0.75
_FELT = 1.1  # copying beside another copy takes longer by this factor, or bandwidth does not matter here
_OVER = object()


@dataclass(frozen=True)
class Felt:
    """None where it was not measured.

    `gil_share`: of the time, in which the GIL is held. `sensitivity`: by what share of itself an iteration takes longer
    beside a thread that copies memory; `pressure`: by how much that takes longer beside the job, 1 being what such a
    thread does to another one. `alone_s`: an iteration, looked at for longer than the plain profile takes.
    """

    gil_share: float | None = None
    sensitivity: float | None = None
    pressure: float | None = None
    alone_s: float | None = None


class _Worker:
    """A thread of the host's, whoever gives it work: a thread that a job starts would be the job's."""

    def __init__(self) -> None:
        self._tasks: queue.SimpleQueue[tuple[Future[Any], Callable[[], Any]]] = queue.SimpleQueue()
        threading.Thread(target=self._work, name="gpushare-companion", daemon=True).start()

    def begin(self, task: Callable[[], Any]) -> Future[Any]:
        future: Future[Any] = Future()
        self._tasks.put((future, task))
        return future

    def _work(self) -> None:
        while True:
            future, task = self._tasks.get()
            try:
                future.set_result(task())
            except Exception as error:
                future.set_exception(error)


@dataclass(frozen=True)
class Round:
    """Seconds of an iteration, and bytes per second of a thread that copies: each alone, both, two of the latter."""

    alone_s: float
    beside_s: float
    copy: float
    copy_beside: float
    copy_beside_copy: float


def felt_of(rounds: Sequence[Round]) -> tuple[float, float] | None:
    """Sensitivity and pressure; None where two threads that copy do not slow each other down."""
    another = median(r.copy / r.copy_beside_copy for r in rounds)
    if another < _FELT:
        return None
    sensitivity = median(r.beside_s / r.alone_s for r in rounds) - 1
    pressure = (median(r.copy / r.copy_beside for r in rounds) - 1) / (another - 1)
    return max(0.0, sensitivity), max(0.0, pressure)


class Companions:
    """Of one profiled job. A thread of the host makes them, before the job begins; no other job may be there.

    :param bandwidth: whether the job computes in this machine's memory.
    """

    def __init__(self, *, bandwidth: bool) -> None:
        self._workers = [_Worker(), _Worker()]
        self._bandwidth = bandwidth
        self._buffers: list[native.Buffer] = []
        self._stop = native.Stop()  # of those that are there
        self._course: Generator[None] | None = None  # goes on at each mark
        self.felt = Felt()

    def look(self, iteration_s: float, cores_busy: float, *, alike: bool) -> bool:
        """To be called at the end of each iteration, once the plain profile is stable; whether all is measured.

        :param iteration_s: as the plain profile has it, and `cores_busy` too; `alike`: so are (nearly) all iterations.
        """
        if self._course is None:
            possible = self._bandwidth and alike and iteration_s <= _LONGEST_S
            least = 2 if iteration_s < _SHORT_S else 1
            self._course = self._measure(least, cores_busy, bandwidth=possible)
        return next(self._course, _OVER) is _OVER

    def close(self) -> None:
        """No companion is there any more. What was not measured to its end is not known."""
        self._stop.set()
        if self._course:
            self._course.close()
        self._buffers.clear()

    def _measure(self, least: int, cores_busy: float, *, bandwidth: bool) -> Generator[None]:
        idle_s, begin_s = _idle_s(), time.monotonic()
        yield from self._watch_gil()
        # Whoever keeps them busy: workers of the job's, or somebody else's processes.
        idle = (_idle_s() - idle_s) / (time.monotonic() - begin_s)
        free = min(idle, len(os.sched_getaffinity(0)) - cores_busy)
        if bandwidth and free >= _FREE_CORE:
            self._buffers = [native.Buffer() for _ in range(2)]
            yield from self._take_turns(least)

    def _watch_gil(self) -> Generator[None]:
        with self._running(native.watch_gil) as (watching,):
            yield from _iterations(1, _GIL_NS)
        found: native.Looks = watching.result()
        if found.looks >= _LEAST_LOOKS:
            self.felt = replace(self.felt, gil_share=found.held / found.looks)

    def _take_turns(self, least: int) -> Generator[None]:
        rounds: list[Round] = []
        begin_ns = time.monotonic_ns()
        while len(rounds) < _ROUNDS:
            rounds.append((yield from self._round(least, alone_first=len(rounds) % 2 == 0)))
            if len(rounds) >= _LEAST_ROUNDS:
                self._note(rounds)
                if time.monotonic_ns() - begin_ns > _ROUNDS_NS:
                    return

    def _note(self, rounds: list[Round]) -> None:
        self.felt = replace(self.felt, alone_s=sorted(r.alone_s for r in rounds)[len(rounds) // 4])
        whole = [r for r in rounds if min(r.copy, r.copy_beside, r.copy_beside_copy) > 0]  # each had its turn
        if len(whole) >= _LEAST_ROUNDS and (found := felt_of(whole)):
            self.felt = replace(self.felt, sensitivity=found[0], pressure=found[1])

    def _round(self, least: int, *, alone_first: bool) -> Generator[None, None, Round]:
        alone_s = (yield from _iterations(least, _BLOCK_NS)) if alone_first else 0.0
        with self._running(self._buffers[0].copy_until) as (copying,):
            beside_s = yield from _iterations(least, _BLOCK_NS)
        beside = copying.result()
        if not alone_first:
            alone_s = yield from _iterations(least, _BLOCK_NS)
        return Round(alone_s, beside_s, self._copied(1), beside, self._copied(2))

    def _copied(self, threads: int) -> float:
        """Bytes per second, of each thread on the mean; the job waits."""
        with self._running(*(buffer.copy_until for buffer in self._buffers[:threads])) as copying:
            time.sleep(_COPY_S)
        return float(sum(future.result() for future in copying)) / threads

    @contextmanager
    def _running(self, *tasks: Callable[[native.Stop], Any]) -> Iterator[list[Future[Any]]]:
        """These are there, until its end."""
        stop = self._stop = native.Stop()
        pairs = zip(self._workers, tasks, strict=False)
        try:
            yield [worker.begin(partial(task, stop)) for worker, task in pairs]
        finally:
            stop.set()


def _iterations(least: int, at_least_ns: int) -> Generator[None, None, float]:
    """Waits for marks. Seconds of an iteration: the median."""
    marks_ns = [time.monotonic_ns()]
    while len(marks_ns) <= least or marks_ns[-1] - marks_ns[0] < at_least_ns:
        yield
        marks_ns.append(time.monotonic_ns())
    return median(after - before for before, after in pairwise(marks_ns)) / 1e9


def _idle_s() -> float:
    """For how long cores of the machine have had nothing to do, in seconds of one core."""
    return float(psutil.cpu_times().idle)
