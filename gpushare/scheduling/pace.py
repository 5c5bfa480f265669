"""Whether jobs run side by side or take turns: what either yields is measured while they run.

Two jobs that each fill the device, or the GIL, can lose by running side by side. The yield of a stretch of time
is the solo time of the iterations done in it over its length: 1 is one job after the other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

_WORTH = 1.1  # sharing that yields this much is not put to the test
_MARGIN = 1.02  # by which a mode on trial must be better
_WINDOW_S, _WINDOW_ITERATIONS = 2.0, 8
_FIRST_STAY, _LONGEST_STAY = 16, 256  # windows before the other mode is tried again


@dataclass(frozen=True)
class Progress:
    """What a job has done past its profile: iterations, with a fraction, of `solo_s` seconds each when alone."""

    iterations: float
    solo_s: float


@dataclass(frozen=True)
class Yields:
    """Solo seconds per second, as last measured; None for what was not tried."""

    sharing: float | None
    turns: float | None
    turns_s: float


class Pace:
    """Compares the modes for the jobs at hand, and anew when they change."""

    def __init__(self) -> None:
        self.turns = False
        self._turns_s = 0.0
        self._looked_s: float | None = None
        self._known = Yields(None, None, 0.0)
        self._begin: tuple[float, float] | None = None
        self._yields: dict[bool, float] = {}
        self._restart(frozenset(), 0.0)

    @property
    def yields(self) -> Yields:
        """Of the jobs at hand, or the last that there were; and for how long jobs took turns."""
        return replace(self._known, turns_s=self._turns_s)

    @property
    def on_trial(self) -> bool:
        """Whether the mode is only being measured."""
        return self._trial

    def look(self, now_s: float, jobs: Mapping[int, Progress]) -> bool:
        """Whether the jobs, by account, should take turns from now on. To be called several times a second."""
        if self.turns and self._looked_s is not None:
            self._turns_s += now_s - self._looked_s
        self._looked_s = now_s
        if frozenset(jobs) != self._accounts:
            self._restart(frozenset(jobs), now_s)
        if len(jobs) < 2:
            return self.turns
        longest_s = max(job.solo_s for job in jobs.values())
        done_s = sum(job.iterations * job.solo_s for job in jobs.values())
        if self._begin is None:
            if now_s >= self._changed_s + 2 * longest_s:  # iterations of the mode before have ended
                self._begin = now_s, done_s
        elif now_s - self._begin[0] >= max(_WINDOW_S, _WINDOW_ITERATIONS * longest_s):
            then_s, before_s = self._begin
            self._yields[self.turns] = (done_s - before_s) / (now_s - then_s)
            self._begin = now_s, done_s
            self._known = Yields(self._yields.get(False), self._yields.get(True), self._turns_s)
            self._decide(now_s)
        return self.turns

    def _restart(self, accounts: frozenset[int], now_s: float) -> None:
        self._accounts = accounts
        self._yields = {}
        self._stay = self._windows_left = _FIRST_STAY
        self._switch(now_s, turns=False, trial=False)

    def _switch(self, now_s: float, *, turns: bool, trial: bool) -> None:
        self.turns, self._trial, self._changed_s = turns, trial, now_s
        self._begin = None

    def _decide(self, now_s: float) -> None:
        here, other = self._yields[self.turns], self._yields.get(not self.turns)
        if self._trial:
            better = other is None or here > other * _MARGIN
            self._trial = False
            self._windows_left, self._stay = self._stay, min(2 * self._stay, _LONGEST_STAY)
            if not better:
                self._switch(now_s, turns=not self.turns, trial=False)
        elif not self.turns and here >= _WORTH:
            return
        elif other is None or self._windows_left == 0:
            self._switch(now_s, turns=not self.turns, trial=True)
        else:
            self._windows_left -= 1
