"""What a thread needs to work for a job: account, generator, and backward in the calling thread."""

from __future__ import annotations

from collections.abc import Callable

import torch

from gpushare.framework import cuda_generators, cuda_streams, switches
from gpushare.isolation import context
from gpushare.native import shim

_set_multithreading: Callable[[bool], None] = torch._C._set_multithreading_enabled


def keep_backward() -> None:
    """Have backward passes of the calling thread run in it. One worker thread of torch's serves those of a device: a
    job that waits there would stall all, and what is computed there is of no job. The flag is the thread's, and
    `torch.inference_mode(False)` sets it (c10/core/InferenceMode.h), so each pass asks for it anew."""
    _set_multithreading(False)


def enter(job: context.JobContext) -> None:
    """Bind the calling thread to `job`."""
    context.bind(job)
    shim.thread_enter(job.account, job.generator._cdata)
    keep_backward()
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
