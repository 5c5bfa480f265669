"""Captures of CUDA graphs beside other jobs.

Torch captures in CUDA's "global" mode, in which what any other thread allocates or waits for spoils the capture
(cudaStreamBeginCapture); "thread_local" forbids the same to the capturing thread alone. And torch keeps one stream for
captures in a class attribute, which would be the first job's. Before each capture it gives back the pinned memory that
nobody uses (torch/cuda/graphs.py, graph.__enter__): that of all jobs, whose next copies would wait for it to be pinned
anew.
"""

from __future__ import annotations

import functools
from typing import Any

import torch
import torch.cuda.graphs

from gpushare.isolation import context
from gpushare.isolation.perjob import PerJob
from gpushare.native import shim

_live: set[context.JobContext] = set()
_streams: PerJob[Any] = PerJob(None, lambda: torch.cuda.Stream())


def install() -> None:
    """Where the run is on a GPU."""
    if shim.device() < 0:
        return
    _capture_by_thread()
    _capture_on_own_stream()
    _keep_pinned_memory()


def _capture_by_thread() -> None:
    kind: Any = torch.cuda.graphs.CUDAGraph
    begin = kind.capture_begin

    @functools.wraps(begin)
    def capture_begin(self: Any, pool: Any = None, capture_error_mode: str = "global", **others: Any) -> None:
        if context.current() and capture_error_mode == "global":
            capture_error_mode = "thread_local"
        begin(self, pool=pool, capture_error_mode=capture_error_mode, **others)

    kind.capture_begin = capture_begin


def _capture_on_own_stream() -> None:
    kind: Any = torch.cuda.graphs.graph
    make = kind.__init__

    @functools.wraps(make)
    def init(
        self: Any, cuda_graph: Any, pool: Any = None, stream: Any = None, *rest: Any, **others: Any
    ) -> None:
        make(self, cuda_graph, pool, stream or _streams.get(), *rest, **others)

    kind.__init__ = init


def _keep_pinned_memory() -> None:
    functions: Any = torch._C
    empty = getattr(functions, "_host_emptyCache", None)
    if empty is None:
        return

    @functools.wraps(empty)
    def _host_emptyCache() -> None:
        if len(_live) <= 1:
            empty()

    functions._host_emptyCache = _host_emptyCache


def enter(job: context.JobContext) -> None:
    """The stream is made for a job's first capture."""
    _live.add(job)


def leave(job: context.JobContext) -> None:
    _live.discard(job)
