"""`torch.set_num_interop_threads`, which torch allows once in a process, and many scripts have in their first lines.

Each job may call it once, as it may by itself. The first call of all sizes the pool; a job is told what it asked for.
"""

from __future__ import annotations

from typing import Any

import torch

from gpushare.isolation import context

_set, _get = torch.set_num_interop_threads, torch.get_num_interop_threads
_REFUSED = "cannot set number of interop threads"
_default = _get()


def set_num_interop_threads(num: int) -> None:
    """As `torch.set_num_interop_threads`, once in each job."""
    job = context.current()
    try:
        _set(num)
    except RuntimeError as error:
        # Before that torch has refused what is no number of threads.
        if job is None or set_num_interop_threads in job.values or _REFUSED not in str(error):
            raise
        if num != _get() and context.in_host():
            _tell(job, num)
    if job:
        job.values[set_num_interop_threads] = num


def get_num_interop_threads() -> int:
    """As `torch.get_num_interop_threads`, for the calling job."""
    job = context.current()
    count: int = job.values.get(set_num_interop_threads, _default) if job else _get()
    return count


def _tell(job: context.JobContext, num: int) -> None:
    job.note(
        f"{job.name} sets the number of inter-op threads to {num}; the process has one pool for all jobs, and its "
        f"number is {_get()} already. Only torch.jit.fork and its like run there"
    )


def install() -> None:
    """Replace the functions."""
    names: Any = torch
    names.set_num_interop_threads, names.get_num_interop_threads = (
        set_num_interop_threads,
        get_num_interop_threads,
    )


def enter(job: context.JobContext) -> None:
    """Nothing: a job begins with torch's default."""


def leave(job: context.JobContext) -> None:
    """Nothing: what the job asked for goes with the context."""
