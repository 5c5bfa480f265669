"""`os.register_at_fork` per job: what a script, or a package of its own, has registered is called where it forks.

The interpreter keeps these until it ends, and calls them in whatever fork.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import wraps
from typing import Any

from gpushare.isolation import context

_register = os.register_at_fork


def _of_job(job: context.JobContext, hook: Any) -> Any:
    if not callable(hook):
        return hook  # refused, with the interpreter's words

    @wraps(hook, updated=())
    def call() -> None:
        if context.current() is job:
            hook()

    return call


@wraps(_register)
def _register_for_job(**hooks: Callable[[], object]) -> None:
    job = context.current()
    if job is None or context.importing_shared():
        return _register(**hooks)
    _register(**{when: _of_job(job, hook) for when, hook in hooks.items()})


def install() -> None:
    """Replace the function."""
    names: Any = os
    names.register_at_fork = _register_for_job


def enter(job: context.JobContext) -> None:
    """Nothing: a job begins with the host's."""


def leave(job: context.JobContext) -> None:
    """Nothing: of an ended job nobody forks."""
