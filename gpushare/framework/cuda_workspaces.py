"""cuBLAS's workspaces, per job. Torch keeps one for each of its handles and streams, from the job that first needs it.

`torch._C._cuda_clearCublasWorkspaces`, which graph trees call around each recording, frees those of all threads:
another job may just have captured a kernel that uses its own. And what a job leaves behind would stay charged until
the run ends.
"""

from __future__ import annotations

from typing import Any

import torch

from gpushare.isolation import context
from gpushare.native import bridge, shim


def install() -> None:
    """Where the run is on a GPU."""
    if shim.device() < 0:
        return
    names: Any = torch._C
    clear_all = names._cuda_clearCublasWorkspaces

    def clear() -> None:
        job = context.current()
        if job is None or not bridge.clear_workspaces(job.account):
            clear_all()

    names._cuda_clearCublasWorkspaces = clear


def enter(job: context.JobContext) -> None:
    """Nothing: workspaces come with the first product of matrices."""


def leave(job: context.JobContext) -> None:
    """The job's workspaces go. Without a bridge that knows them they stay: other jobs may be using theirs."""
    if shim.device() >= 0:
        bridge.clear_workspaces(job.account)
