"""Names of a module, per job, that its own functions read and set as globals."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import wraps
from typing import Any

from gpushare.isolation import context, interrupts
from gpushare.isolation.perjob import PerJob


def has_names(module: Any, *names: str) -> bool:
    """Whether this version of a package keeps its state where we know it; if not, the job that imports it is told."""
    missing = [name for name in names if name not in vars(module)]
    job = context.current()
    if missing and job:
        job.note(
            f"{module.__name__} has no {', '.join(missing)} in the version that is installed: what it keeps is one for "
            "all jobs. Use it in one script at a time"
        )
    return not missing


class SwappedNames:
    """The calling job's values lie among the module's names while one of the functions runs, for one job at a time."""

    def __init__(self, module: Any, names: tuple[str, ...]) -> None:
        self._names, self._table = names, vars(module)
        first = self._now()
        self._values: PerJob[tuple[Any, ...]] = PerJob(first, lambda: first)
        self._lock = interrupts.whole(threading.RLock())
        self._is_inside = False

    def _now(self) -> tuple[Any, ...]:
        return tuple(self._table[name] for name in self._names)

    def around(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function as it is to be called from now on. They may call each other."""

        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            with self._lock:
                if self._is_inside:
                    return function(*args, **kwargs)
                self._is_inside = True
                self._table.update(zip(self._names, self._values.get(), strict=True))
                try:
                    return function(*args, **kwargs)
                finally:
                    self._values.set(self._now())
                    self._is_inside = False

        return call
