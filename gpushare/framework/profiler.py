"""Torch's profiler, of which there is one per process: scripts that profile do so one after the other. Two at once
crash torch."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import torch.autograd.profiler

from gpushare.framework.one_at_a_time import OneAtATime
from gpushare.isolation import context

# Who waits may have an iteration open that the other one waits for.
LONGEST_WAIT_S = 30.0

_profiles = OneAtATime("profiler", "has ended its profile")


def _beginning(function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    def begin(*args: Any, **kwargs: Any) -> Any:
        if job := context.current():
            _profiles.begin(job, LONGEST_WAIT_S)
        return function(*args, **kwargs)

    return begin


def _ending(function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    def end(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        finally:
            if job := context.current():
                _profiles.end(job, all_of_it=True)  # it was both prepared and enabled

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
    if _profiles.end(job, all_of_it=True):
        _disable()
