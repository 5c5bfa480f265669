"""The file behind `--trace`: made and begun before anything runs, written by the host."""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO

from gpushare.errors import UsageError
from gpushare.launcher.plan import RunPlan


def begin(path: Path | None, plan: RunPlan) -> BinaryIO | None:
    """The file of an allocation log with its first line; None without a path.

    :raises UsageError: it can't be written.
    """
    if path is None:
        return None
    try:
        file = path.open("wb", buffering=0)
        file.write(plan.log_header())
    except OSError as error:
        raise UsageError(f"--trace {path} can't be written: {error.strerror}") from None
    return file
