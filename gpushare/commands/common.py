"""What `run` and `profile` both check."""

from __future__ import annotations

import math
import os
import platform
import sys
import sysconfig
from collections.abc import Callable, Sequence
from typing import TextIO

import click

from gpushare.errors import UsageError
from gpushare.jobs import ORDERS, JobSpec
from gpushare.launcher.devices import Device
from gpushare.launcher.plan import PAGE_BYTES
from gpushare.native import library
from gpushare.scheduling.policies import ORDERED, SEGMENTED
from gpushare.units import format_apart, format_bytes, parse_budget, parse_bytes

LEAST_RESERVE_BYTES, RESERVE_SHARE = 1 << 30, 0.05
LEAST_BUDGET_BYTES = 32 << 20


def within(least: float, most: float) -> Callable[[str], float]:
    """A type of options: finite numbers between two others. What is none of these is refused with the rule."""

    def number(text: str) -> float:
        try:
            found = float(text)
        except ValueError:
            found = math.nan
        if not least <= found <= most:
            raise click.BadParameter(f"must be a number from {least:g} to {most:g}, but got {str(text)!r}")
        return found

    return number


device_option = click.option(
    "--device",
    default="auto",
    show_default=True,
    help="Whose memory is shared: auto (the first GPU that the driver has, else the CPU), cpu or cuda[:N].",
)

order_option = click.option(
    "--order",
    type=click.Choice(ORDERS),
    help="Who goes first of the jobs that wait. Default: fifo; priority, if a job has one.",
)
priority_option = click.option(
    "--priority",
    "priorities",
    metavar="NAME=N",
    multiple=True,
    help="Of a job, by its name in the output (its script's, without .py), from -10^9 to 10^9; the highest goes first.",
)
split_option = click.option(
    "--split-size",
    metavar="SIZE",
    help="Of waterwave's segments, 2 MiB at least: memory is promised by these, starts are at their ends and planned "
    "in rounds always.",
)


def check_platform() -> None:
    """The shim needs Linux and glibc, and jobs that share an interpreter need its lock.

    :raises UsageError: elsewhere, or where the shim was not built.
    """
    if sys.platform != "linux" or platform.libc_ver()[0] != "glibc":
        raise UsageError(f"gpushare needs Linux with glibc, but this is {platform.platform()}")
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        raise UsageError(
            f"gpushare needs a python with a global interpreter lock, but {sys.executable} is built without: use the "
            "usual build of python 3.11 to 3.14"
        )
    if not library.library_path().exists():
        raise UsageError(
            f"the shim is not built: {library.library_path()} is missing; install gpushare again by pip install"
        )


def choose_budget(text: str | None, device: Device) -> tuple[int, str]:
    """The budget in bytes, whole pages, and how it came about.

    :raises UsageError: see `units.parse_budget`; or too small to hold anything.
    """
    if text is None:
        reserve = max(LEAST_RESERVE_BYTES, int(device.total_bytes * RESERVE_SHARE))
        budget = device.free_bytes - reserve
        how = f"what is free now less a reserve of {format_bytes(reserve)}"
    else:
        budget, how = parse_budget(text, device.total_bytes), "--budget"
        if budget > device.free_bytes:
            how += f", although only {format_bytes(device.free_bytes)} are free now"
    check_least(budget, f"{how} gives")
    return whole_pages(budget), how


def check_least(budget: int, how: str) -> None:
    """:raises UsageError: too small to hold anything; `how` stands before the figure."""
    if budget < LEAST_BUDGET_BYTES:
        least, got = format_apart(LEAST_BUDGET_BYTES, budget)
        raise UsageError(f"the budget must be at least {least}, but {how} {got}")


def split_bytes(text: str | None) -> int | None:
    """The size of segments that `--split-size` asks for.

    :raises UsageError: unreadable, or less than what the pool gives at a time.
    """
    if text is None:
        return None
    size = parse_bytes(text)
    if size < PAGE_BYTES:
        least, got = format_apart(PAGE_BYTES, size)
        raise UsageError(f"--split-size must be at least a page, {least}, but got {text!r} ({got})")
    return size


def check_policies(
    policies: Sequence[str], specs: Sequence[JobSpec], order: str | None, split_size: str | None
) -> None:
    """What asks for something that none of the policies does is refused.

    :raises UsageError: it is.
    """
    named = f"--policy {' and '.join(policies)}"
    if split_size is not None and not set(policies) & set(SEGMENTED):
        raise UsageError(
            f"--split-size cannot be used with {named}: only {' and '.join(SEGMENTED)} have segments"
        )
    if set(policies) & set(ORDERED):
        return
    asked = "--order" if order else "a job's priority" if any(spec.priority for spec in specs) else None
    if asked:
        raise UsageError(f"{asked} cannot be used with {named}: no job waits there, so none goes first")


def whole_pages(size: int) -> int:
    """What the shim makes of a budget."""
    return size - size % PAGE_BYTES


def say(text: str) -> None:
    """A line of gpushare's own on stderr; where that is gone, nothing."""
    try:
        print(f"gpushare: {text}", file=sys.stderr, flush=True)
    except OSError:
        _drop(sys.stderr)


def let_go() -> None:
    """At the end of the program: what can't be written any more must not change its exit code."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            _drop(stream)


def _drop(stream: TextIO) -> None:
    # What is still in the buffer would fail once more when the interpreter ends.
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def to_stdout(show: Callable[[], None], what: str) -> None:
    """Run `show`, which prints; a full disk or a closed pipe is told on stderr and changes no exit code."""
    try:
        show()
        sys.stdout.flush()
    except OSError as error:
        say(f"{what} could not be printed: {error.strerror}")
        _drop(sys.stdout)
