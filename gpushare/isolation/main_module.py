"""`sys.modules["__main__"]` answers for the job that asks, so that pickle, dataclasses and typing find
the script's own classes there."""

from __future__ import annotations

import sys
import types
from typing import Any

from gpushare.isolation import context

_host_main = sys.modules["__main__"]


def _target() -> types.ModuleType:
    job = context.current()
    return job.main if job else _host_main


class _Main(types.ModuleType):
    def __getattribute__(self, name: str) -> Any:
        return getattr(_target(), name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(_target(), name, value)

    def __delattr__(self, name: str) -> None:
        delattr(_target(), name)

    def __dir__(self) -> list[str]:
        return dir(_target())


def install() -> None:
    """Replace the host's `__main__`."""
    sys.modules["__main__"] = _Main("__main__")
