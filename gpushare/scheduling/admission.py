"""Which jobs are begun: Salus's condition (section 4.1). What all keep between iterations, and the most that one of
them needs beyond that, fit together; so each of them can run, at least one at a time.

A job whose need is known from a saved profile waits here, before its script has done anything, until others have
ended. One without a profile is begun: the shim charges it as it goes.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from gpushare.units import format_bytes

_LOOK_EVERY_S = 0.5


@dataclass(frozen=True)
class Need:
    """Bytes: what a job keeps between its iterations, and the most that it holds in one."""

    residue_bytes: int
    peak_bytes: int


def missing_bytes(newcomer: Need, others: Mapping[str, Need], room_bytes: int) -> int:
    """By how much the newcomer does not fit beside the others; nought or less if it does."""
    every = [newcomer, *others.values()]
    beyond = max(need.peak_bytes - need.residue_bytes for need in every)
    return sum(need.residue_bytes for need in every) + beyond - room_bytes


def why_not_yet(name: str, newcomer: Need, others: Mapping[str, Need], room_bytes: int) -> str:
    """For the person who waits."""
    keep = sum(need.residue_bytes for need in others.values())
    return (
        f"{name} waits for another job to end: it needs {format_bytes(newcomer.peak_bytes)} and keeps "
        f"{format_bytes(newcomer.residue_bytes)}; {', '.join(others)} keep {format_bytes(keep)} between "
        f"iterations, and the budget has {format_bytes(room_bytes)} for all"
    )


@dataclass(eq=False)
class _Waiting:
    rank: int
    came: int
    need: Need | None

    @property
    def place(self) -> tuple[int, int]:
        return self.rank, self.came


class Queue:
    """Jobs that wait to be begun. `enter` and `leave` may be called from any thread.

    :param room: bytes of the budget for jobs, now.
    :param measured: what a job that has begun needs as far as it was measured, by its account.
    """

    def __init__(self, room: Callable[[], int], measured: Callable[[int], Need]) -> None:
        self._room, self._measured = room, measured
        self._begun: dict[str, int] = {}  # accounts by name
        self._expected: dict[str, Need] = {}
        self._waiting: list[_Waiting] = []
        self._came = self._expected_jobs = 0
        self._changed = threading.Condition()

    def expect(self, jobs: int) -> None:
        """So many will enter; before that nobody begins who has to fit."""
        with self._changed:
            self._expected_jobs = jobs

    def enter(
        self,
        name: str,
        account: int,
        need: Need | None,
        *,
        rank: int,
        note: Callable[[str], None],
        given_up: Callable[[], bool],
    ) -> bool:
        """Return when the job may begin: at once without a `need`. False: it was given up first.

        :param rank: of those that wait the lowest goes first; another one may pass it if only that one fits.
        """
        with self._changed:
            waiting = _Waiting(rank, self._came, need)
            self._came += 1
            self._changed.notify_all()
            self._waiting.append(waiting)
            told = False
            while not given_up():
                if need is None or self._may_begin(waiting):
                    break
                if not told and self._came >= self._expected_jobs and not self._fits(waiting):
                    note(why_not_yet(name, need, self._needs(), self._room()))
                    told = True
                self._changed.wait(_LOOK_EVERY_S)
            self._waiting.remove(waiting)
            if given_up():
                return False
            self._begun[name] = account
            if need:
                self._expected[name] = need
            self._changed.notify_all()
            return True

    def leave(self, name: str) -> None:
        """The job ended."""
        with self._changed:
            self._begun.pop(name, None)
            self._expected.pop(name, None)
            self._changed.notify_all()

    def _may_begin(self, waiting: _Waiting) -> bool:
        if self._came < self._expected_jobs:
            return False
        ahead = (w for w in self._waiting if w is not waiting and w.place < waiting.place)
        return self._fits(waiting) and not any(self._fits(other) for other in ahead)

    def _fits(self, waiting: _Waiting) -> bool:
        if waiting.need is None or not self._begun:
            return True
        return missing_bytes(waiting.need, self._needs(), self._room()) <= 0

    def _needs(self) -> dict[str, Need]:
        return {name: self._need(name, account) for name, account in self._begun.items()}

    def _need(self, name: str, account: int) -> Need:
        now, expected = self._measured(account), self._expected.get(name, Need(0, 0))
        return Need(max(now.residue_bytes, expected.residue_bytes), max(now.peak_bytes, expected.peak_bytes))
