"""Errors that a GPU does not recover from: an assertion in a kernel, an illegal address, a launch that failed.

The driver then refuses every call for this context, and all jobs share one (CUDA Driver API, "CUresult": "the context
cannot be used"). So the job that meets such an error first need not be the one that made it.
"""

from __future__ import annotations

import torch

from gpushare.native import shim

# What torch raises for an error of the device itself; what it refuses by itself is a plain RuntimeError.
_OF_THE_DEVICE: type[RuntimeError] = getattr(torch, "AcceleratorError", RuntimeError)


def lost() -> str | None:
    """What the device answers if it is lost for all jobs, else None. To be asked by each job at its end, however it
    ended: a script may have caught the error, or its own guard may have turned it into an exit code. Waits until all
    is done that the job has launched."""
    if shim.device() < 0 or not torch.cuda.is_initialized():
        return None
    try:
        # By an event: a script may have forbidden to wait for a stream (`torch.cuda.set_sync_debug_mode`).
        torch.cuda.current_stream().record_event().synchronize()
        torch.cuda.synchronize()
    except _OF_THE_DEVICE as error:
        # A capture that broke off is the job's own affair.
        return None if "captur" in str(error) else f"{type(error).__name__}: {error}"
    return None
