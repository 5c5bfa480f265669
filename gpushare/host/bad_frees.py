"""`--debug-memory`: tells which job freed what was no block (any more)."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from gpushare.host.control import Control
from gpushare.native import usage
from gpushare.native.usage import BadFreeReport

LOOK_EVERY_S = 0.1


def watch(jobs: Sequence[dict[str, Any]], control: Control) -> None:
    """Tell of bad frees as they come, for ever."""
    while True:
        tell(jobs, control)
        time.sleep(LOOK_EVERY_S)


def tell(jobs: Sequence[dict[str, Any]], control: Control) -> None:
    """Tell of the bad frees that were not told yet."""
    while found := usage.next_bad_free():
        control.send("note", message=describe(found, [job["name"] for job in jobs]))


def describe(found: BadFreeReport, names: Sequence[str]) -> str:
    """One bad free in words. `names` are the jobs' by account, from account 1 on."""

    def name(account: int) -> str:
        return names[account - 1] if 0 < account <= len(names) else "no job"

    block = f"a block of {found.bytes} bytes of {name(found.owner)}"
    text = f"bad free: {name(found.freer)} freed {found.address:#x}, "
    if found.kind == usage.FREED_TWICE:
        return f"{text}{block} that {name(found.freed_by)} had freed in its iteration {found.iteration}"
    if found.kind == usage.FREED_INSIDE:
        return f"{text}which lies {found.offset} bytes inside {block}"
    return f"{text}where no block is, nor was one lately"
