"""Sections in which nobody waits for memory: whoever holds a process-wide lock draws on the headroom.

Imports (the module locks), logging (handler locks) and garbage collection (other threads' finalizers).
"""

from __future__ import annotations

import gc
import importlib
import logging
from typing import Any

from gpushare import native


def _guard_imports() -> None:
    bootstrap: Any = importlib._bootstrap
    find_and_load = bootstrap._find_and_load

    def guarded(name: str, import_: Any) -> Any:
        native.nowait(1)
        try:
            return find_and_load(name, import_)
        finally:
            native.nowait(-1)

    bootstrap._find_and_load = guarded


def _guard_logging() -> None:
    acquire, release = logging.Handler.acquire, logging.Handler.release

    def acquire_guarded(self: logging.Handler) -> None:
        acquire(self)
        native.nowait(1)

    def release_guarded(self: logging.Handler) -> None:
        native.nowait(-1)
        release(self)

    logging.Handler.acquire = acquire_guarded  # type: ignore[method-assign]
    logging.Handler.release = release_guarded  # type: ignore[method-assign]


def _guard_collection(phase: str, info: dict[str, int]) -> None:
    native.nowait(1 if phase == "start" else -1)


def install() -> None:
    """Put the guards in place."""
    _guard_imports()
    _guard_logging()
    gc.callbacks.append(_guard_collection)
