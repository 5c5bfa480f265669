"""`torch.backends.opt_einsum`, per job: whether `torch.einsum` looks for the best order of its products, and how. It
changes the last bits of results where opt_einsum is installed.

Torch has a module there that stands before the one with the functions. What a script assigns stays at the first, in the
way of what `flags` sets at the second.
"""

from __future__ import annotations

import threading
from functools import wraps
from typing import Any

import torch.backends.opt_einsum

from gpushare.isolation import attributes, context, interrupts
from gpushare.isolation.perjob import PerJob

_shown: Any = torch.backends.opt_einsum
_module: Any = _shown.m
_globals = vars(_module)
_flags: dict[str, PerJob[Any]] = {name: PerJob(_globals[name], None) for name in ("enabled", "strategy")}
_lock = interrupts.whole(threading.Lock())


def install() -> None:
    """Replace what reads and writes the two."""
    set_flags = _module.set_flags

    @wraps(set_flags)
    def own(*args: Any, **kwargs: Any) -> Any:
        """Torch's checks and sets its globals: with the job's values in them meanwhile."""
        with _lock:
            process = {name: _globals[name] for name in _flags}
            _globals.update({name: value.get() for name, value in _flags.items()})
            try:
                return set_flags(*args, **kwargs)
            finally:
                for name, value in _flags.items():
                    value.set(_globals[name])
                if context.current():
                    _globals.update(process)

    _module.set_flags = own
    for name, value in _flags.items():
        attributes.make_per_job(_module, name, value)
        attributes.make_per_job(_shown, name, PerJob(attributes.MISSING, None))


def enter(job: context.JobContext) -> None:
    """Nothing: a job begins with the process's values."""


def leave(job: context.JobContext) -> None:
    """Nothing: values go with the job."""
