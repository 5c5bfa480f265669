"""Makes torch's CUDA ready for jobs: memory from the pool, initialised before any of them runs."""

from __future__ import annotations

from collections.abc import Callable

import torch

from gpushare.framework import cuda_bridge
from gpushare.framework.selfcheck import SelfCheckError
from gpushare.native import shim


def start(note: Callable[[str], None]) -> None:
    """Once per host, when the shim has started on a GPU and torch has not touched it yet.

    :raises NativeError: torch does not take the allocator.
    :raises SelfCheckError: a tensor does not lie in the pool.
    """
    cuda_bridge.install(note)
    torch.cuda.init()
    probe = torch.empty(1 << 18, device="cuda")
    if shim.owner(probe.data_ptr()) < 0:
        raise SelfCheckError(
            f"torch {torch.__version__} does not take CUDA memory from the allocator that it was given"
        )
