"""Compiling is a section without waits for memory: torch lets one thread compile at a time, and a job that waited
for memory with that lock in hand would keep it from a job that could give some back."""

from __future__ import annotations

import threading
import types
from typing import Any

from gpushare.isolation import context, imports
from gpushare.native import shim

_MODULE = "torch._dynamo.convert_frame"


class _CompileLock:
    """Stands for the lock that is held while one frame is compiled."""

    def __init__(self, lock: Any) -> None:
        self._lock = lock

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        taken: bool = self._lock.acquire(blocking, timeout)
        if taken:
            shim.nowait(1)
        return taken

    def release(self) -> None:
        shim.nowait(-1)
        self._lock.release()

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()


def _guard(module: types.ModuleType) -> None:
    dynamo: Any = module
    if isinstance(dynamo.compile_lock, type(threading.RLock())):
        dynamo.compile_lock = _CompileLock(dynamo.compile_lock)


def install() -> None:
    """Replace the lock as soon as the compiler has been imported, which takes long and many scripts never do."""
    imports.when_imported(_MODULE, _guard)


def enter(job: context.JobContext) -> None:
    """Nothing to set up."""


def leave(job: context.JobContext) -> None:
    """Nothing to take down."""
