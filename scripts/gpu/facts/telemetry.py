"""What the device tells of memory."""

import os
from typing import Any

from ..checks import CannotCheck, Seen, check
from ..device import GIB, MIB, ready
from ..later import torch


def nvml() -> Any:
    """NVML's module and the device that torch calls 0."""
    try:
        import pynvml
    except ImportError as error:
        raise CannotCheck(f"pynvml is not there: {error}") from error
    pynvml.nvmlInit()
    uuid = str(torch.cuda.get_device_properties(0).uuid).removeprefix("GPU-")
    return pynvml, pynvml.nvmlDeviceGetHandleByUUID(f"GPU-{uuid}")


@check("NVML tells the memory of this very process, by its process id.")
def nvml_tells_of_this_process(seen: Seen) -> None:
    ready()
    kept = torch.ones(GIB, dtype=torch.uint8, device="cuda")
    pynvml, device = nvml()
    found = {one.pid: one.usedGpuMemory for one in pynvml.nvmlDeviceGetComputeRunningProcesses(device)}
    seen.figure("processes", len(found))
    seen.figure("used_bytes", found.get(os.getpid()))
    seen.claim("the process is listed", os.getpid() in found)
    seen.claim("with at least its tensor", (found.get(os.getpid()) or 0) >= kept.numel())
    seen.figure("device_used_bytes", pynvml.nvmlDeviceGetMemoryInfo(device).used)


@check("A CUDA context with torch's kernels takes less than 2 GiB of the device, before any tensor.")
def context_size(seen: Seen) -> None:
    ready()
    torch.cuda.empty_cache()
    free, total = torch.cuda.mem_get_info()
    seen.figure("total_bytes", total)
    seen.figure("taken_MiB", (total - free) / MIB)
    seen.claim("less than 2 GiB", total - free < 2 * GIB)
