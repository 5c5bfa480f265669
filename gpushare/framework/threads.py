"""What a thread needs to work for a job: account, generator, and backward in the calling thread."""

from __future__ import annotations

import torch

from gpushare.framework import cuda_generators, cuda_streams, switches
from gpushare.isolation import context
from gpushare.native import shim


def enter(job: context.JobContext) -> None:
    """Bind the calling thread to `job`."""
    context.bind(job)
    shim.thread_enter(job.account, job.generator._cdata)
    # One worker thread serves all backward passes of a device: a job that waits there would stall all.
    torch.autograd.set_multithreading_enabled(False)
    if not context.in_host():  # in a forked child, which can't use CUDA and has the number of threads it has
        return
    switches.enter_thread(job)
    cuda_streams.enter_thread(job)
    cuda_generators.enter_thread(job)


def leave() -> None:
    """The calling thread is done with its job."""
    shim.thread_leave()
    if context.in_host():
        cuda_streams.leave_thread()
    context.bind(None)
