"""`atexit` per job: what a job registers runs when the job ends, in its own thread."""

from __future__ import annotations

import atexit
from collections.abc import Callable
from functools import partial
from typing import Any

from gpushare.isolation import context

_register = atexit.register


def register(function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Callable[..., Any]:
    """As `atexit.register`, for the calling job."""
    job = context.current()
    if job is None or not context.in_host():
        return _register(function, *args, **kwargs)
    job.at_exit.append(partial(function, *args, **kwargs))
    return function


def install() -> None:
    """Replace `atexit.register`."""
    atexit.register = register
