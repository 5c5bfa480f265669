"""A job's own CUDA stream: what it and its threads issue to unless they choose another.

It is created by us because torch's pool has 32 streams and gives them out again, and it is a *blocking* one, as torch's
are not: extensions that launch on the legacy stream stay ordered with the job.
"""

from __future__ import annotations

from typing import Any

import torch

from gpushare.isolation import context
from gpushare.native import shim
from gpushare.native.word import Word


def make(account: int) -> torch.cuda.ExternalStream:
    """A new stream of the job. CUDA must be initialised.

    :raises RuntimeError: of torch, with the runtime's words: no stream can be made.
    """
    handle = Word()
    runtime: Any = torch.cuda.cudart()
    torch.cuda.check_error(runtime.cudaStreamCreate(handle.address))
    shim.stream_begin(account, handle.value)
    return torch.cuda.ExternalStream(handle.value)


def destroy(stream: torch.cuda.ExternalStream) -> None:
    """Give the stream up. What it was given is waited for; no thread may use it any more."""
    stream.synchronize()
    shim.stream_end(stream.cuda_stream)
    runtime: Any = torch.cuda.cudart()
    torch.cuda.check_error(runtime.cudaStreamDestroy(stream.cuda_stream))


def install() -> None:
    """Nothing: streams come with jobs."""


def enter(job: context.JobContext) -> None:
    """The job gets its stream, where the run is on a GPU."""
    if shim.device() >= 0:
        job.values[make] = make(job.account)
        enter_thread(job)


def enter_thread(job: context.JobContext) -> None:
    """The calling thread issues to the job's stream from now on."""
    if stream := job.values.get(make):
        torch.cuda.set_stream(stream)


def leave(job: context.JobContext) -> None:
    """The stream goes, with all that it was given done."""
    if stream := job.values.pop(make, None):
        torch.cuda.set_stream(torch.cuda.default_stream())
        destroy(stream)
