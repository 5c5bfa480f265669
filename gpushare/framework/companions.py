"""What a job takes and feels of what all jobs share, measured beside companions of ours, once its profile is stable.

First the GIL: a thread looks now and then whether anybody holds it. Then memory bandwidth, as in Bubble-Up (Mars et
al., MICRO 2011): a thread copies memory as fast as it can. By what share of itself an iteration then takes longer is
the job's `sensitivity`; by what share the copying does, of what it does beside a second thread that copies, is its
`pressure`. Beside another job this one then takes longer by its sensitivity times the other's pressure. The cores
have a part in that once more of them are wanted than there are, so it is measured where the job leaves one free.

A machine's pace wanders by more than that, so all four (job, job and copy, copy, two copies) come in short turns, the
job waiting at its mark in two of them, and the median of the turns counts.
"""

from __future__ import annotations

import os
import queue
import threading
import time
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import median
from typing import Any

from gpushare.native import companions as native

_GIL_NS, _LEAST_LOOKS = 10**9, 50
_ROUNDS, _LEAST_ROUNDS, _ROUNDS_NS = 15, 2, 6 * 10**9  # no more than the least once that time has passed
_BLOCK_NS, _ITERATIONS = 100 * 10**6, 2  # of a turn of the job; of each at least
_COPY_S = 0.03
_FREE_CORE = 0.75
_OVER = object()
_FELT = 1.1  # copying beside another copy takes longer by this factor, or bandwidth does not matter here


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
        self._course: Generator[None] | None = None  # goes on at each mark
        self.felt = Felt()

    def look(self, cores_busy: float) -> bool:
        """To be called at the end of each iteration, once the plain profile is stable; whether all is measured."""
        if self._course is None:
            free = len(os.sched_getaffinity(0)) - cores_busy >= _FREE_CORE
            self._course = self._measure(bandwidth=self._bandwidth and free)
        return next(self._course, _OVER) is _OVER

    def close(self) -> None:
        """No companion is there any more. What was not measured for long is not known."""
        if self._course:
            self._course.close()
        self._buffers.clear()

    def _measure(self, *, bandwidth: bool) -> Generator[None]:
        yield from self._watch_gil()
        if bandwidth:
            self._buffers = [native.Buffer() for _ in range(2)]
            yield from self._take_turns()

    def _watch_gil(self) -> Generator[None]:
        stop = native.Stop()
        watching = self._workers[0].begin(lambda: native.watch_gil(stop))
        try:
            yield from _iterations(_GIL_NS)
        finally:
            stop.set()
            found: native.Looks = watching.result()
            if found.looks >= _LEAST_LOOKS:
                self.felt = replace(self.felt, gil_share=found.held / found.looks)

    def _take_turns(self) -> Generator[None]:
        rounds: list[Round] = []
        begin_ns = time.monotonic_ns()
        while len(rounds) < _ROUNDS:
            rounds.append((yield from self._round()))
            self.felt = replace(self.felt, alone_s=sorted(r.alone_s for r in rounds)[len(rounds) // 4])
            if len(rounds) >= _LEAST_ROUNDS:
                if found := felt_of(rounds):
                    self.felt = replace(self.felt, sensitivity=found[0], pressure=found[1])
                if time.monotonic_ns() - begin_ns > _ROUNDS_NS:
                    return

    def _round(self) -> Generator[None, None, Round]:
        alone_s = yield from _iterations(_BLOCK_NS)
        stop = native.Stop()
        copying = self._copy(0, stop)
        try:
            beside_s = yield from _iterations(_BLOCK_NS)
        finally:
            stop.set()
            beside = copying.result()
        return Round(alone_s, beside_s, self._copied(1), beside, self._copied(2))

    def _copied(self, threads: int) -> float:
        """Bytes per second, of each thread on the mean; the job waits."""
        stop = native.Stop()
        copying = [self._copy(i, stop) for i in range(threads)]
        time.sleep(_COPY_S)
        stop.set()
        return sum(future.result() for future in copying) / threads

    def _copy(self, number: int, stop: native.Stop) -> Future[float]:
        buffer = self._buffers[number]
        return self._workers[number].begin(lambda: buffer.copy_until(stop))


def _iterations(at_least_ns: int) -> Generator[None, None, float]:
    """Waits for marks. Seconds of an iteration: the median."""
    marks_ns = [time.monotonic_ns()]
    while len(marks_ns) <= _ITERATIONS or marks_ns[-1] - marks_ns[0] < at_least_ns:
        yield
        marks_ns.append(time.monotonic_ns())
    return median(after - before for before, after in pairwise(marks_ns)) / 1e9
