"""`torch.distributed`: its default process group is one per process, so one job at a time can have it."""

from __future__ import annotations

import threading
from typing import Any

import torch.distributed

from gpushare.isolation import context, interrupts

_dist: Any = torch.distributed
_owner: context.JobContext | None = None
_lock = interrupts.whole(threading.Lock())


def _claim(job: context.JobContext) -> None:
    global _owner
    with _lock:
        if _owner in (None, job):
            _owner = job
            return
        assert _owner
        raise RuntimeError(
            f"gpushare: {_owner.name} has torch.distributed's process group, and there is one for the whole "
            f"process: run {job.name} when {_owner.name} has ended"
        )


def _release(job: context.JobContext) -> None:
    global _owner
    with _lock:
        if _owner is job and not _dist.is_initialized():
            _owner = None


def _init(*args: Any, **kwargs: Any) -> None:
    job = context.current()
    if job is None or not context.in_host():
        _original_init(*args, **kwargs)
        return
    _claim(job)
    try:
        _original_init(*args, **kwargs)
    finally:
        _release(job)  # if it failed


def _destroy(*args: Any, **kwargs: Any) -> None:
    _original_destroy(*args, **kwargs)
    if job := context.current():
        _release(job)


def install() -> None:
    """Watch who makes the default group."""
    global _original_init, _original_destroy
    if not _dist.is_available():
        return
    from torch.distributed import distributed_c10d

    _original_init = distributed_c10d.init_process_group
    _original_destroy = distributed_c10d.destroy_process_group
    for module in (_dist, distributed_c10d):
        module.init_process_group, module.destroy_process_group = _init, _destroy


def enter(job: context.JobContext) -> None:
    """Nothing to set up."""


def leave(job: context.JobContext) -> None:
    """Take the job's group down, if the script has not."""
    if _owner is job and _dist.is_initialized():
        _dist.destroy_process_group()


_original_init: Any = None
_original_destroy: Any = None
