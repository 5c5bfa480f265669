"""Torch's profiler, of which there is one per process: scripts that profile do so one after the other. Two at once
crash torch."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from functools import wraps
from typing import Any

import torch.autograd.profiler

from gpushare.isolation import context

# Who waits may have an iteration open that the other one waits for.
LONGEST_WAIT_S = 30.0

_changed = threading.Condition()
_owner: context.JobContext | None = None


def _begin(job: context.JobContext) -> None:
    global _owner
    until_s = time.monotonic() + LONGEST_WAIT_S
    with _changed:
        while (owner := _owner) is not None and owner is not job:
            job.note(
                f"{job.name} waits until {owner.name} has ended its profile: torch has one profiler per process"
            )
            if not _changed.wait(until_s - time.monotonic()) and time.monotonic() >= until_s:
                raise RuntimeError(
                    f"torch has one profiler per process, and {owner.name}, in the same run of gpushare, has not ended "
                    f"its profile for {LONGEST_WAIT_S:.0f} s; profile in one script at a time"
                )
        _owner = job


def _end(job: context.JobContext) -> bool:
    """Whether it was profiling."""
    global _owner
    with _changed:
        if _owner is not job:
            return False
        _owner = None
        _changed.notify_all()
        return True


def _beginning(function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    def begin(*args: Any, **kwargs: Any) -> Any:
        if job := context.current():
            _begin(job)
        return function(*args, **kwargs)

    return begin


def _ending(function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    def end(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        finally:
            if job := context.current():
                _end(job)

    return end


_module: Any = torch.autograd.profiler
_disable = _module._disable_profiler


def install() -> None:
    """Watch where torch begins to get ready for a profile, and where it ends one."""
    for name in ("_prepare_profiler", "_enable_profiler"):
        if begin := getattr(_module, name, None):
            setattr(_module, name, _beginning(begin))
    _module._disable_profiler = _ending(_disable)


def enter(job: context.JobContext) -> None:
    """Nothing: a job begins without a profile."""


def leave(job: context.JobContext) -> None:
    """A profile that the script has left open ends."""
    if _end(job):
        _disable()
