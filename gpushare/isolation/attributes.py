"""An attribute of a module per job, for reading and for assignment."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

from gpushare.isolation.perjob import PerJob


def make_per_job(module: types.ModuleType, name: str, value: PerJob[Any]) -> None:
    """A property of the module's class comes before its own attribute, which its own functions go on to read."""
    kind: Any = type(module)
    if kind is types.ModuleType:
        kind = module.__class__ = type("module", (types.ModuleType,), {})
    setattr(kind, name, property(lambda _: value.get(), lambda _, new: value.set(new)))


def calling(value: PerJob[Any], default: Any) -> Callable[..., Any]:
    """Stands where a function is looked up that each job may replace; None is none."""

    def call(*args: Any, **kwargs: Any) -> Any:
        function = value.get()
        return (default if function is None else function)(*args, **kwargs)

    return call
