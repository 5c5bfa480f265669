"""How storages of other devices are saved and loaded (`torch.serialization.register_package`), per job."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import torch.serialization

from gpushare.isolation import context

_KEY = ("storage packages",)
_names: Any = torch.serialization
_register = _names.register_package
_Function = Callable[..., Any]


class _OfJob:
    """A function that is called for its job only. None is torch's word for a storage that is not of this package.

    Torch sorts what is registered, by the functions too where two of different jobs have one priority.
    """

    def __init__(self, job: context.JobContext, function: _Function) -> None:
        self._job, self._function = job, function

    def __call__(self, *args: Any) -> Any:
        return self._function(*args) if context.current() is self._job else None

    def __lt__(self, _: object) -> bool:
        return False

    __gt__ = __lt__


@wraps(_register)
def _register_package(priority: int, tagger: _Function, deserializer: _Function) -> None:
    job = None if context.importing_shared() else context.current()
    if job is None:
        _register(priority, tagger, deserializer)
        return
    own = _OfJob(job, tagger), _OfJob(job, deserializer)
    job.values.setdefault(_KEY, []).append(own[0])
    _register(priority, *own)


def install() -> None:
    """Replace the function."""
    _names.register_package = _register_package


def enter(job: context.JobContext) -> None:
    """Nothing: a job begins with what torch has."""


def leave(job: context.JobContext) -> None:
    """What the job has registered is no longer asked."""
    gone = job.values.pop(_KEY, [])
    kept = _names._package_registry
    kept[:] = [entry for entry in kept if not any(entry[1] is tagger for tagger in gone)]
