"""A job's own CUDA stream: what it and its threads issue to unless they choose another.

It is created by us because torch's pool has 32 streams and gives them out again, and it is a *blocking* one, as torch's
are not: extensions that launch on the legacy stream stay ordered with the job. Torch's C++ takes it for the default
stream in the job's threads, and gives them side streams of the job's own (`shim/src/interpose_cuda.cpp`).
"""

from __future__ import annotations

import threading
from typing import Any

import torch

from gpushare.isolation import context, interrupts
from gpushare.native import shim
from gpushare.native.word import Word

_first_use = interrupts.whole(threading.Lock())


def make(account: int) -> torch.cuda.ExternalStream:
    """A new stream of the job. CUDA must be initialised.

    :raises RuntimeError: of torch, with the runtime's words: no stream can be made.
    """
    handle = Word()
    runtime: Any = torch.cuda.cudart()
    torch.cuda.check_error(runtime.cudaStreamCreate(handle.address))
    shim.stream_begin(account, handle.value)
    return torch.cuda.ExternalStream(handle.value)


def end(stream: torch.cuda.ExternalStream) -> None:
    """Give the stream up; what it was given is waited for. The driver keeps it, since what outlives the job may
    still name it: pinned memory, events, a daemon thread."""
    stream.record_event().synchronize()  # a script may have forbidden to wait for a stream
    shim.stream_end(stream.cuda_stream)


def install() -> None:
    """Nothing: streams come with jobs."""


def enter(job: context.JobContext) -> None:
    """The job gets its stream, where the run is on a GPU."""
    if shim.device() < 0:
        return
    job.values[make] = make(job.account)
    enter_thread(job)
    with _first_use:  # torch runs its initializer once per job, and not for two at once
        torch.empty(0, device="cuda")


def enter_thread(job: context.JobContext) -> None:
    """The calling thread issues to the job's stream from now on."""
    if stream := job.values.get(make):
        shim.thread_cuda_stream(stream.cuda_stream)
        torch.cuda.set_stream(stream)


def leave_thread() -> None:
    """The calling thread has left its job, and the job's stream with it."""
    if shim.device() >= 0:
        torch.cuda.set_stream(torch.cuda.default_stream())


def leave(job: context.JobContext) -> None:
    """The stream goes, with all done that it and the job's other streams were given."""
    if stream := job.values.pop(make, None):
        torch.cuda.synchronize()
        end(stream)
