"""Torch's default CPU generator per job.

The C++ symbol is the shim's (`shim/src/interpose.cpp`); what is left is the Python object that
`torch.manual_seed`, `get_rng_state` and others use.
"""

from __future__ import annotations

import sys
from typing import Any

import torch

from gpushare.isolation import context

_host_generator = torch.default_generator


class _DefaultGenerator(torch.Generator):  # type: ignore[misc]  # torch is not read by mypy
    """Stands for the calling job's generator wherever torch's Python code means the default one."""

    def __getattribute__(self, name: str) -> Any:
        if name == "__class__":
            return _DefaultGenerator
        job = context.current()
        return getattr(job.generator if job else _host_generator, name)


def new() -> torch.Generator:
    """A generator as torch's default one is in a fresh process: seeded from the system's entropy."""
    generator = torch.Generator()
    generator.seed()
    return generator


def install() -> None:
    """Replace the default generator in every module of torch that has it by name."""
    proxy = _DefaultGenerator()
    module: Any
    for module in list(sys.modules.values()):
        if getattr(module, "__name__", "").startswith("torch") and (
            vars(module).get("default_generator") is _host_generator
        ):
            module.default_generator = proxy


def enter(job: context.JobContext) -> None:
    """Nothing: the job was made with its generator."""


def leave(job: context.JobContext) -> None:
    """Nothing: it goes with the context."""
