"""Questions about CUDA memory that torch puts to the CUDA runtime, not to its allocator: answered for the job."""

from __future__ import annotations

from typing import Any

import torch

from gpushare.native import bridge, shim, usage


def free_and_total(_device: object = None) -> tuple[int, int]:
    """As `cudaMemGetInfo`, in bytes, as if the budget were the card and no other job used it."""
    memory = usage.memory(shim.thread_account())
    taken: int = memory.held_bytes + memory.shared_bytes
    return max(0, memory.limit_bytes - taken), memory.budget_bytes


def install() -> None:
    """`torch.cuda.mem_get_info` and whoever else asks `torch.cuda.cudart()`."""
    runtime: Any = getattr(torch._C, "_cudart", None)
    if runtime is not None:  # a build without CUDA has none
        runtime.cudaMemGetInfo = free_and_total


def install_properties() -> None:
    """`torch.cuda.get_device_properties(0).total_memory` is the budget too, with the bridge.

    Torch must have initialised CUDA. The object stays torch's own, one for all: compiled code asks for its type.
    """
    names: Any = torch.cuda
    ask = names._get_device_properties

    def _get_device_properties(device: int) -> Any:
        bridge.set_total_memory(device, free_and_total()[1])
        return ask(device)

    names._get_device_properties = _get_device_properties
