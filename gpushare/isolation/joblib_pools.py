"""joblib's pool of processes (loky's reusable executor), of which it has one per process: each job has its own, and it
ends with the job."""

from __future__ import annotations

import types
from typing import Any

from gpushare.isolation import context, imports, threads
from gpushare.isolation.swapped_names import SwappedNames, has_names

_PACKAGES = ("joblib.externals.loky", "loky")
_NAMES = ("_executor", "_executor_kwargs")  # the pool, and what it was made with


def _split(module: Any) -> None:
    if not has_names(module, *_NAMES, "_ReusablePoolExecutor"):
        return
    kind, own = module._ReusablePoolExecutor, SwappedNames(module, _NAMES)
    kind.get_reusable_executor = classmethod(own.around(vars(kind)["get_reusable_executor"].__func__))


def _shut_down(executor: Any, wait: bool) -> None:
    executor.shutdown(wait=wait, kill_workers=not wait)


def _watch(module: types.ModuleType) -> None:
    if has_names(module, "_threads_wakeups"):
        threads.add_managers(vars(module)["_threads_wakeups"], _shut_down)


def install() -> None:
    """When a job imports it."""
    for package in _PACKAGES:
        imports.when_imported(f"{package}.reusable_executor", _split)
        imports.when_imported(f"{package}.process_executor", _watch)


def enter(job: context.JobContext) -> None:
    """Nothing: a job begins without a pool."""


def leave(job: context.JobContext) -> None:
    """Nothing: `threads` has ended it."""
