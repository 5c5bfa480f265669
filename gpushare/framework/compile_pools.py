"""Inductor's pools of processes that compile or tune kernels: one for all jobs, and the host's.

Each is made when the first kernel is compiled, so by a job. As the job's it would end with it: its thread, which reads
what the processes answer, would be asked to end, and nobody else's kernels would ever be compiled.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from typing import Any

from gpushare.isolation import context, imports

# A module, the class there (or none), and the cached function that makes the pool when it is first called.
_POOLS = (
    ("torch._inductor.async_compile", "AsyncCompile", "process_pool"),
    ("torch._inductor.compile_fx_subproc", "_SubprocessFxCompile", "process_pool"),
    ("torch._inductor.autotune_process", "", "get_tuning_process_pool"),
)
_made: list[Any] = []


def for_all(make: Callable[[], Any]) -> Callable[[], Any]:
    """The function; threads, finalizers and exit handlers that it leaves are the host's, whichever job calls it."""

    @functools.wraps(make)
    def made() -> Any:
        context.count_shared_import(1)
        try:
            pool = make()
        finally:
            context.count_shared_import(-1)
        _made.append(pool)
        return pool

    return made


def let_go() -> None:
    """The host ends: no exit handler waits for the processes, which may still be importing torch.

    The launcher ends what the host leaves behind.
    """
    for pool in _made:
        if hasattr(pool, "running"):
            pool.running = False  # so it has nothing to shut down (`SubprocPool.shutdown`)


def _share(kind: str, name: str, module: types.ModuleType) -> None:
    owner: Any = getattr(module, kind, None) if kind else module
    cached: Any = getattr(owner, name, None)
    # A pool that is there by now was made when the module was imported, and is the host's.
    if hasattr(cached, "__wrapped__") and not cached.cache_info().currsize:
        again = functools.lru_cache(1)(for_all(cached.__wrapped__))
        setattr(owner, name, staticmethod(again) if kind else again)


def install() -> None:
    """When inductor is imported."""
    for module, kind, name in _POOLS:
        imports.when_imported(module, functools.partial(_share, kind, name))


def enter(job: context.JobContext) -> None:
    """Nothing to set up."""


def leave(job: context.JobContext) -> None:
    """Nothing to take down: the pools end with the host."""
