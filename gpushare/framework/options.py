"""Options of torch that are plain Python values, per job: how tensors are printed, how processes share them."""

from __future__ import annotations

import copy
import dataclasses
from typing import Any

import torch
import torch.multiprocessing

from gpushare.isolation import context
from gpushare.isolation.perjob import PerJob
from gpushare.isolation.replace import replace_everywhere


def _per_job(options: Any) -> Any:
    """A dataclass object whose fields each job has for itself; a job begins with `options`' values."""
    own: PerJob[Any] = PerJob(options, lambda: copy.copy(options))
    names = {field.name for field in dataclasses.fields(options)}

    def read(self: Any, name: str) -> Any:
        return getattr(own.get(), name) if name in names else object.__getattribute__(self, name)

    def write(_: Any, name: str, value: Any) -> None:
        setattr(own.get(), name, value)

    methods = {"__init__": lambda _: None, "__getattribute__": read, "__setattr__": write}
    return type("Options", (type(options),), methods)()


_strategy: PerJob[str] = PerJob(torch.multiprocessing.get_sharing_strategy(), None)


def set_sharing_strategy(new_strategy: str) -> None:
    """As `torch.multiprocessing.set_sharing_strategy`, for the calling job."""
    known = torch.multiprocessing.get_all_sharing_strategies()
    if new_strategy not in known:
        raise AssertionError(f"invalid sharing strategy {new_strategy!r}, expected one of {known}")
    _strategy.set(new_strategy)


def get_sharing_strategy() -> str:
    """As `torch.multiprocessing.get_sharing_strategy`, for the calling job."""
    return _strategy.get()


def install() -> None:
    """Replace the object and the functions."""
    options = torch._tensor_str.PRINT_OPTS
    replace_everywhere([(options, _per_job(options))], but="")
    torch.multiprocessing.set_sharing_strategy = set_sharing_strategy
    torch.multiprocessing.get_sharing_strategy = get_sharing_strategy


def enter(job: context.JobContext) -> None:
    """Nothing: values are copied when they are first asked for."""


def leave(job: context.JobContext) -> None:
    """Nothing: values go with the context."""
