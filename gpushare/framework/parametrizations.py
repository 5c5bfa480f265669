"""`torch.nn.utils.parametrize.cached()`, per job. Torch counts who is in it in a global of its module, where every
parametrized module of the process looks: in other jobs, too, it would take values of an earlier step.

Nothing stands in torch's place while nobody is in it, since torch's compiler looks at that global as well.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from functools import wraps
from typing import Any

import torch.nn.utils.parametrize

from gpushare.isolation import context, interrupts
from gpushare.isolation.replace import replace_everywhere

_module: Any = torch.nn.utils.parametrize
_DEPTH, _VALUES = (__name__, "depth"), (__name__, "values")  # in `JobContext.values`
_lock = interrupts.whole(threading.Lock())
_inside = 0  # of all jobs


class _IsCached:
    """As `_cache_enabled`: whether the calling thread's job is in it."""

    def __bool__(self) -> bool:
        job = context.current()
        return job is not None and job.values.get(_DEPTH, 0) > 0


class _Values:
    """As `_cache`: of the calling thread's job."""

    def get(self, key: Any) -> Any:
        return _values().get(key)

    def __setitem__(self, key: Any, value: Any) -> None:
        _values()[key] = value


def _values() -> dict[Any, Any]:
    job = context.current()
    found: dict[Any, Any] = job.values.setdefault(_VALUES, {}) if job else {}
    return found


def _count(job: context.JobContext, by: int) -> None:
    global _inside
    with _lock:
        by = max(by, -job.values.get(_DEPTH, 0))  # what the script left open may be closed after its end
        job.values[_DEPTH] = job.values.get(_DEPTH, 0) + by
        _inside += by
        _module._cache_enabled = _IsCached() if _inside else 0
        _module._cache = _Values() if _inside else {}
    if job.values[_DEPTH] == 0:
        job.values.pop(_VALUES, None)


def install() -> None:
    """Count per job."""
    torchs = _module.cached

    @contextlib.contextmanager
    @wraps(torchs)
    def cached() -> Iterator[None]:
        job = context.current()
        if job is None:
            with torchs():
                yield
            return
        _count(job, 1)
        try:
            yield
        finally:
            _count(job, -1)

    replace_everywhere([(torchs, cached)], but=__name__)


def enter(job: context.JobContext) -> None:
    """Nothing: a job begins outside."""


def leave(job: context.JobContext) -> None:
    """What the script has left open ends."""
    _count(job, -job.values.get(_DEPTH, 0))
