"""Errors that a GPU does not recover from: an assertion in a kernel, an illegal address, a launch that failed.

The driver then refuses every call for this context, and all jobs share one (CUDA Driver API, "CUresult": "the context
cannot be used"). So the job that meets such an error first need not be the one that made it.
"""

from __future__ import annotations

import torch

from gpushare.native import shim


def lasts(error: BaseException) -> bool:
    """Whether the device is lost for all jobs, asked when a job has ended with `error`."""
    if shim.device() < 0 or not isinstance(error, RuntimeError) or isinstance(error, torch.OutOfMemoryError):
        return False
    try:
        torch.cuda.current_stream().synchronize()
        torch.cuda.synchronize()
    except RuntimeError as still:
        return "captur" not in str(still)  # a capture that broke off is the job's own affair
    return False
