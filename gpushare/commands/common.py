"""What `run` and `profile` both check."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Callable

import psutil
import rich.console

from gpushare.errors import UsageError
from gpushare.native import library
from gpushare.units import format_bytes, parse_budget

LEAST_RESERVE_BYTES, RESERVE_SHARE = 1 << 30, 0.05
LEAST_BUDGET_BYTES = 32 << 20


def check_platform() -> None:
    """The shim needs Linux and glibc.

    :raises UsageError: elsewhere, or where the shim was not built.
    """
    if sys.platform != "linux" or platform.libc_ver()[0] != "glibc":
        raise UsageError(f"gpushare needs Linux with glibc, but this is {platform.platform()}")
    if not library.library_path().exists():
        raise UsageError(f"the shim is not built: {library.library_path()} is missing; pip install gpushare")


def check_device(device: str) -> str:
    """The device to use; `auto` is the CPU until CUDA is supported.

    :raises UsageError: cuda, or no device at all.
    """
    if device in ("auto", "cpu"):
        return "cpu"
    kind, _, index = device.partition(":")
    if kind == "cuda" and (not index or index.isdigit()):
        raise UsageError(f"--device {device}: CUDA is not supported yet; use --device cpu or auto")
    raise UsageError(f"--device must be auto, cpu or cuda[:N], but got {device!r}")


def choose_budget(text: str | None) -> tuple[int, str]:
    """The budget in bytes and how it came about.

    :raises UsageError: see `units.parse_budget`; or too small to hold anything.
    """
    memory = psutil.virtual_memory()
    if text is None:
        reserve = max(LEAST_RESERVE_BYTES, int(memory.total * RESERVE_SHARE))
        budget = memory.available - reserve
        how = f"what is free now less a reserve of {format_bytes(reserve)}"
    else:
        budget, how = parse_budget(text, memory.total), "--budget"
    if budget < LEAST_BUDGET_BYTES:
        raise UsageError(
            f"the budget must be at least {format_bytes(LEAST_BUDGET_BYTES)}, "
            f"but {how} gives {format_bytes(budget)}"
        )
    return budget, how


class Console(rich.console.Console):
    """Wide where it is no terminal, and a closed pipe is left to its user: rich's own ends the program."""

    def __init__(self) -> None:
        super().__init__(width=None if sys.stdout.isatty() else 120)

    def on_broken_pipe(self) -> None:
        """Called by rich while it handles the error."""
        raise


def to_stdout(show: Callable[[], None], what: str) -> None:
    """Run `show`, which prints; a full disk or a closed pipe is told on stderr and changes no exit code."""
    try:
        show()
        sys.stdout.flush()
    except OSError as error:
        print(f"gpushare: {what} could not be printed: {error.strerror}", file=sys.stderr)
        # What is still in the buffer would fail once more when the interpreter ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
