"""How far a job's CPU may be ahead of its GPU: the limit of iterations in flight (Zico, USENIX ATC 2021).

At each end of an iteration an event is recorded, and the one of K iterations before is waited for: asleep, without the
GIL. The device keeps K iterations of work meanwhile, so it never runs dry for it. K is 1 where an iteration lasts 5 ms
or longer, and else as many as last 5 ms: waking up takes some 50 us, and short iterations want slack. Without a bound a
job would pass its doors long before its work is done, and hold memory of iterations that the device has not begun.
"""

from __future__ import annotations

import math
import time
from collections import deque
from typing import Any

import torch

from gpushare.isolation import context
from gpushare.native import shim

SLACK_S = 0.005
MOST_ITERATIONS = 64
_WEIGHT = 0.2  # of the latest iteration in the mean


class Line:
    """The iterations of a job that the device may not have ended, oldest first."""

    def __init__(self) -> None:
        self.limit = 1
        self._in_flight: deque[Any] = deque()
        self._unused: list[Any] = []
        self._last_s = 0.0
        self._mean_s = 0.0

    def mark(self, now_s: float) -> None:
        """An iteration ended on the CPU; returns when at most `limit` may be in flight."""
        self._adapt(now_s)
        event = self._unused.pop() if self._unused else torch.cuda.Event(blocking=True)
        event.record()
        self._in_flight.append(event)
        while len(self._in_flight) > self.limit:
            oldest = self._in_flight.popleft()
            oldest.synchronize()
            self._unused.append(oldest)

    def _adapt(self, now_s: float) -> None:
        """Marks come at the pace of the slower one of CPU and device, once the line is full."""
        took_s, self._last_s = now_s - self._last_s, now_s
        if took_s < now_s:  # not the first
            self._mean_s += (took_s - self._mean_s) * (_WEIGHT if self._mean_s else 1.0)
            self.limit = limit_for(self._mean_s)


def limit_for(iteration_s: float) -> int:
    """Iterations in flight, for iterations of that length in seconds."""
    if iteration_s <= SLACK_S / MOST_ITERATIONS:
        return MOST_ITERATIONS
    return math.ceil(SLACK_S / iteration_s)


def mark(job: context.JobContext) -> None:
    """Called at each end of an iteration, in the thread that ended it."""
    line = job.values.get(Line)
    # What is captured runs when the graph does, and no event of a capture can be waited for.
    if line is not None and not torch.cuda.is_current_stream_capturing():
        line.mark(time.monotonic())


def install() -> None:
    """Nothing: `mark` is given to `iterations.install`."""


def enter(job: context.JobContext) -> None:
    """Where the run is on a GPU."""
    if shim.device() >= 0:
        job.values[Line] = Line()


def leave(job: context.JobContext) -> None:
    """Nothing is in flight that the end of the job's streams would not wait for."""
    job.values.pop(Line, None)
