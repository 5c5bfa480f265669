"""Jobs that were copied out and have no room to come back (`shim/src/stranded.cpp`): told of, then abandoned."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from gpushare.native import shim
from gpushare.units import format_bytes

# For a user who raises the budget meanwhile, or a library that lets go of what it keeps.
PATIENCE_S = 30.0


class Runner(Protocol):
    """What is to be known of a job and done with it (`jobs.JobRunner`)."""

    @property
    def name(self) -> str: ...
    @property
    def account(self) -> int: ...
    @property
    def runs(self) -> bool: ...
    def abandon(self, why: str) -> None: ...


class Lookout:
    """Looks for stranded jobs. `note` tells the user."""

    def __init__(self, runners: Sequence[Runner], note: Callable[[str], None]) -> None:
        self._runners = runners
        self._note = note
        self._told: set[int] = set()

    def look(self) -> None:
        """Tell of each job that is stranded, once; abandon one that has been for `PATIENCE_S`."""
        for runner in self._runners:
            found = shim.stranded(runner.account) if runner.runs else None
            if found is None:
                self._told.discard(runner.account)
            elif found.for_s >= PATIENCE_S:
                runner.abandon(describe(found))
            elif runner.account not in self._told:
                self._told.add(runner.account)
                self._note(
                    f"{runner.name} waits: {describe(found)}; it ends in {PATIENCE_S:.0f} s if nothing changes"
                )


def describe(found: shim.Stranded) -> str:
    """Why the job can't go on, and the budget in which it could."""
    needs_mib = -(-found.needs_bytes >> 20)
    return (
        f"its {format_bytes(found.copied_out_bytes)} were copied out for the others, and the "
        f"{format_bytes(found.kept_bytes)} that ended jobs and libraries keep leave no room for them in the budget of "
        f"{format_bytes(found.budget_bytes)}: it needs `gpushare budget {needs_mib}MiB` or more, or to be run apart"
    )
