"""`torch.accelerator.synchronize` waits for the calling job's work only.

`torch.cuda.synchronize` does so by the shim (`c10::cuda::device_synchronize`, `shim/src/interpose_cuda.cpp`);
torch.accelerator's asks the CUDA runtime itself. `Stream.synchronize` and events wait for one stream as they are.
"""

from __future__ import annotations

from typing import Any

import torch

from gpushare.isolation import context
from gpushare.native import shim


def install() -> None:
    """Where the run is on a GPU."""
    if shim.device() < 0:
        return
    names: Any = torch._C
    for_all = names._accelerator_synchronizeDevice

    def synchronize(device: int) -> None:
        if context.current() is None:
            for_all(device)
        else:
            names._cuda_synchronize()

    names._accelerator_synchronizeDevice = synchronize


def enter(job: context.JobContext) -> None:
    """Nothing: the job's streams are the shim's to know."""


def leave(job: context.JobContext) -> None:
    """Nothing."""
