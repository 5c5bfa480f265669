"""The file behind `--trace`: made and begun before anything runs, written by the host."""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO

from gpushare.errors import UsageError
from gpushare.launcher.run import PAGE_BYTES, RunPlan
from gpushare.telemetry import allocation_log


def begin(path: Path | None, plan: RunPlan) -> BinaryIO | None:
    """The file of an allocation log with its first line; None without a path.

    :raises UsageError: it can't be written.
    """
    if path is None:
        return None
    jobs = [(job.name, job.command) for job in plan.jobs]
    budget = {"budget_bytes": plan.budget_bytes, "page_bytes": PAGE_BYTES, "region_bytes": plan.region_bytes}
    line = allocation_log.header(jobs, policy=plan.policy, device="cpu", **budget)
    try:
        file = path.open("wb", buffering=0)
        file.write(line)
    except OSError as error:
        raise UsageError(f"--trace {path} can't be written: {error.strerror}") from None
    return file
