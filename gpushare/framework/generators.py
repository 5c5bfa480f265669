"""Torch's default CPU generator per job.

The C++ symbol is the shim's (`shim/src/interpose.cpp`); what is left is the Python object. Torch's own Python code
(`torch.manual_seed`, `get_rng_state` and others) finds one that delegates. It can't stand for the generator where C++
reads the object itself (`torch.rand(3, generator=...)`), so scripts that ask for it by name get their job's own.
"""

from __future__ import annotations

import sys
import types
from typing import Any

import torch
import torch.random
import torch.utils.data.dataset

from gpushare.framework.inplace import add_answer
from gpushare.isolation import attributes, context

_host_generator = torch.default_generator


class _DefaultGenerator(torch.Generator):  # type: ignore[misc]  # torch is not read by mypy
    """Stands for the calling job's generator wherever torch's Python code means the default one."""

    def __getattribute__(self, name: str) -> Any:
        if name == "__class__":
            return _DefaultGenerator
        return getattr(_own(), name)


_proxy = _DefaultGenerator()


def _own() -> Any:
    job = context.current()
    return job.generator if job else _host_generator


def _named() -> Any:
    """What code that names the generator gets. A shared module keeps what it gets when it is imported."""
    return _proxy if context.importing_shared() else _own()


class _Module(types.ModuleType):
    """A module whose functions find the delegating object, and who asks from outside the job's generator."""

    default_generator = property(lambda _: _named())


def new() -> torch.Generator:
    """A generator as torch's default one is in a fresh process: seeded from the system's entropy."""
    generator = torch.Generator()
    generator.seed()
    return generator


def install() -> None:
    """Replace the default generator in every module of torch that has it by name."""
    module: Any
    for module in list(sys.modules.values()):
        if getattr(module, "__name__", "").startswith("torch") and (
            vars(module).get("default_generator") is _host_generator
        ):
            module.default_generator = _proxy
    attributes.give_class(torch.random, _Module)
    # Not by a class here: names of a plain module are found faster, and these are looked up all the time.
    del torch.default_generator
    add_answer(torch.__getattr__, "default_generator", _named)
    # It hands its default on to `randperm`, for which None is the default generator.
    split: Any = torch.utils.data.dataset.random_split
    split.__defaults__ = tuple(None if d is _host_generator else d for d in split.__defaults__)


def enter(job: context.JobContext) -> None:
    """Nothing: the job was made with its generator."""


def leave(job: context.JobContext) -> None:
    """Nothing: it goes with the context."""
