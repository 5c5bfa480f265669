"""The GPU's default random generator per job.

C++ finds it by the shim (`at::cuda::detail::getDefaultCUDAGenerator`, `shim/src/interpose_cuda.cpp`). Python reads the
tuple `torch.cuda.default_generators`, in `torch.manual_seed`, `torch.cuda.get_rng_state`, `fork_rng` and others.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from gpushare.isolation import context
from gpushare.native import shim


class _Generators(tuple[Any, ...]):
    """Torch's tuple, with the calling job's generator in it: of one device, as a job sees one."""

    def _now(self) -> tuple[Any, ...]:
        job = context.current()
        own = job and job.values.get(new)
        return (own,) if own else tuple(tuple.__iter__(self))

    def __getitem__(self, index: Any) -> Any:
        return self._now()[index]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._now())


def new() -> torch.Generator:
    """A generator as torch's default one is in a fresh process: seeded from the system's entropy."""
    generator = torch.Generator("cuda")
    generator.seed()
    return generator


def install() -> None:
    """Where the run is on a GPU, and torch has initialised it."""
    if shim.device() >= 0:
        torch.cuda.default_generators = _Generators(torch.cuda.default_generators)


def enter(job: context.JobContext) -> None:
    """The job gets its generator."""
    if shim.device() >= 0:
        job.values[new] = new()
        enter_thread(job)


def enter_thread(job: context.JobContext) -> None:
    """The calling thread draws from the job's generator from now on."""
    if generator := job.values.get(new):
        shim.thread_cuda_generator(generator._cdata)


def leave(job: context.JobContext) -> None:
    """Nothing: it goes with the context, since daemon threads may still draw from it."""
