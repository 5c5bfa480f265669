"""joblib's pool of processes (loky's reusable executor), of which it has one per process: each job has its own, and it
ends with the job."""

from __future__ import annotations

import threading
import types
from functools import wraps
from typing import Any

from gpushare.isolation import context, imports, threads
from gpushare.isolation.perjob import PerJob

_PACKAGES = ("joblib.externals.loky", "loky")
_NAMES = ("_executor", "_executor_kwargs")  # of its module: the pool, and what it was made with


class _Pools:
    """Has the pool of the calling job stand among the module's names while the module looks for it."""

    def __init__(self, module: Any) -> None:
        self._names = vars(module)
        self._values: PerJob[tuple[Any, ...]] = PerJob((None, None), lambda: (None, None))
        self._lock = threading.RLock()
        self._is_inside = False  # the function calls itself
        kind = module._ReusablePoolExecutor
        find = vars(kind)["get_reusable_executor"].__func__

        @wraps(find)
        def find_own(cls: Any, *args: Any, **kwargs: Any) -> Any:
            with self._lock:
                if self._is_inside:
                    return find(cls, *args, **kwargs)
                self._begin()
                try:
                    return find(cls, *args, **kwargs)
                finally:
                    self._end()

        kind.get_reusable_executor = classmethod(find_own)

    def _begin(self) -> None:
        self._is_inside = True
        self._names.update(zip(_NAMES, self._values.get(), strict=True))

    def _end(self) -> None:
        self._values.set(tuple(self._names[name] for name in _NAMES))
        self._is_inside = False


def _shut_down(executor: Any, wait: bool) -> None:
    executor.shutdown(wait=wait, kill_workers=not wait)


def _watch(module: types.ModuleType) -> None:
    threads.add_managers(vars(module)["_threads_wakeups"], _shut_down)


def install() -> None:
    """When a job imports it."""
    for package in _PACKAGES:
        imports.when_imported(f"{package}.reusable_executor", _Pools)
        imports.when_imported(f"{package}.process_executor", _watch)


def enter(job: context.JobContext) -> None:
    """Nothing: a job begins without a pool."""


def leave(job: context.JobContext) -> None:
    """Nothing: `threads` has ended it."""
