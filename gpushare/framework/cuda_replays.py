"""Iterations of loops that replay CUDA graphs.

A captured optimizer step runs with each replay of its graph, and no hook of Python with it. So a graph in which a step
was captured ends an iteration each time that it is replayed. Such a loop need not allocate anything, so the replay
passes the door itself.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from weakref import WeakSet

import torch
import torch.cuda.graphs

from gpushare.framework import iterations
from gpushare.isolation import context
from gpushare.native import bridge, shim

_end_iterations: WeakSet[Any] = WeakSet()


def install() -> None:
    """Where the run is on a GPU."""
    if shim.device() >= 0:
        watch(torch.cuda.graphs.CUDAGraph)


def watch(kind: Any) -> None:
    """Replace the methods of a class of graphs."""
    # From torch 2.14 on an end has two parts, and torch.cuda.graph calls them by themselves.
    end_name = "capture_end_pre" if hasattr(kind, "capture_end_pre") else "capture_end"
    begin, end, replay = kind.capture_begin, getattr(kind, end_name), kind.replay

    @functools.wraps(begin)
    def capture_begin(self: Any, *args: Any, **named: Any) -> None:
        with _told(ends=0):
            begin(self, *args, **named)
        iterations.capture_begins()

    @functools.wraps(end)
    def capture_end(self: Any) -> None:
        _end_iterations.discard(self)
        if iterations.capture_ends():
            _end_iterations.add(self)
        with _told(ends=1):
            end(self)

    @functools.wraps(replay)
    def replayed(self: Any) -> None:
        if self not in _end_iterations:
            replay(self)
            return
        iterations.replay_begins()
        replay(self)
        iterations.after_replay()

    kind.capture_begin, kind.replay = capture_begin, replayed
    setattr(kind, end_name, capture_end)


@contextmanager
def _told(*, ends: int) -> Iterator[None]:
    """Have the allocator know what became of a capture where torch fails before it tells: before 2.13.

    :param ends: how many captures are over after it.
    """
    job = context.current()
    under_way = bridge.captures(job.account) if job else 0
    try:
        yield
    except RuntimeError:
        if job:
            bridge.abandon_captures(job.account, under_way - ends)
        raise


def enter(job: context.JobContext) -> None:
    """Nothing: graphs are known from their capture on."""


def leave(job: context.JobContext) -> None:
    """Nothing."""
