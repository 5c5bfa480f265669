"""How many jobs are there at once.

What each job keeps between its iterations leaves less room for those of the others. Where memory is short fewer jobs at
once may do more: iterations of eight jobs that keep three eighths of their peaks do not overlap in the memory of three,
those of four do. Those that go first stay; the others are set aside, copied out at their doors (`shim/src/aside.cpp`).
Of jobs of the same rank all come to be there: when one ends the next one comes, and after a turn those that waited
come first. Each is put off by that, so it must be clearly better than all else, and be so as measured
(`scheduling.pace`).

It is found by forecast. Curves leave contention out: what all jobs at once lose by that, as measured, limits what
fewer of them can gain (`scheduling.efficiency`); what such a forecast was itself last wrong by counts for the next one.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from gpushare.scheduling.efficiency import efficiency, serial_share, slowed_down
from gpushare.scheduling.meter import Reading
from gpushare.scheduling.settling import Settling
from gpushare.scheduling.snapshot import TURNS, JobState

_PRICE = 1.15  # of being set aside: by so much it must be better
_UNTRIED = 1.1  # and by so much more as long as that is only believed
_CLEARLY = 1.15  # by which fewer jobs are forecast to be better, by curves alone
_ALIKE = 0.9  # of the best: rather more jobs at once
_RUNS_BY = ("zico",)
_NUMBERS = 8  # of jobs at once, that are looked at
_TURN_S = 60.0  # at least, that jobs are there or away for
_COPY_BYTES_PER_S = 1e9
_COPY_SHARE = 0.05  # of the time so far, and of a turn, that copying may take


class Forecast(Protocol):
    """The efficiency of each mode for these accounts; of all that are known from the beginning unless told."""

    def __call__(
        self, accounts: Collection[int], modes: Sequence[str] | None = None, /
    ) -> Mapping[str, float]: ...


@dataclass(frozen=True)
class Resident:
    """A job, and what would be copied out of it. The lowest rank goes first."""

    account: int
    residue_bytes: int
    rank: int = 0


def residents(jobs: Iterable[JobState], ranks: Mapping[int, int]) -> list[Resident]:
    """Those that have a curve."""
    return [
        Resident(job.account, job.curve.residue_bytes, ranks.get(job.account, 0)) for job in jobs if job.curve
    ]


@dataclass(frozen=True)
class Found:
    """So many of the first ones, and the efficiency of all while the others stand still."""

    at_once: int
    efficiency: float


def best_number(in_order: Sequence[int], forecast: Forecast) -> Found | None:
    """How many of the jobs are forecast to do most, two at least and not all; None of fewer than three.

    :param in_order: accounts, who goes first first.
    :param forecast: for these accounts alone, which run as under `zico`.
    """
    jobs = len(in_order)
    every = range(jobs - 1, 1, -1)
    apart = max(1, -(-len(every) // _NUMBERS))
    numbers = every[apart - 1 :: apart]  # close to all of many is the most to look ahead, for the least
    found = {n: _of_all(forecast(in_order[:n], _RUNS_BY)[_RUNS_BY[0]], n, jobs) for n in numbers}
    if not found:
        return None
    most = max(found.values())
    at_once = max(n for n, worth in found.items() if worth >= _ALIKE * most)
    return Found(at_once, found[at_once])


def _of_all(together: float, at_once: int, jobs: int) -> float:
    return efficiency([together / at_once] * at_once + [0.0] * (jobs - at_once))


def turn_s(leaving_bytes: int) -> float:
    """How long jobs are there or away for, where so much is copied out when it ends."""
    return max(_TURN_S, _copying_s(leaving_bytes) / _COPY_SHARE)


def _copying_s(leaving_bytes: int) -> float:
    return 2 * leaving_bytes / _COPY_BYTES_PER_S  # out and back


class FewerSearch:
    """Finds the number for the jobs of the last `see`, and keeps what was measured of it."""

    def __init__(self) -> None:
        self.aside: frozenset[int] = frozenset()
        self.at_once: int | None = None  # that were last there at once for being better; None: it was not
        self._residents: Sequence[Resident] = ()
        self._forecast: Forecast = lambda accounts, modes=None: {}
        self._found: Found | None = None
        self._all: Mapping[str, float] = {}  # what was forecast of all at once then
        self._searched = False
        self._right: float | None = None  # what was last measured over its forecast
        self._learned_of: frozenset[int] = frozenset()  # that and `at_once`
        self._settling = Settling()
        self._away_since_s: dict[int, float] = {}
        self._turn_began_s = -math.inf
        self._first: dict[int, int] = {}  # who goes first of the same rank, by account: the lowest

    @property
    def moving_s(self) -> float:
        """How long it last took until those set aside were away, or back."""
        return self._settling.took_s

    def see(self, residents: Sequence[Resident], forecast: Forecast) -> None:
        """The jobs as they are now; no residents where nobody may be set aside."""
        self._residents, self._forecast = residents, forecast

    def restart(self, accounts: Collection[int]) -> None:
        """Other jobs are there, or they have become others. What was learned of jobs that are gone is no more."""
        self._found, self._searched = None, False
        if self._learned_of.isdisjoint(accounts):
            self.at_once, self._right = None, None

    def believed(self, sharing: str | None, worth: float) -> float | None:
        """What is believed of the mode with fewer jobs at once; None if it is not forecast to be better.

        Where it was measured, that tells most; else what all at once lose against their forecast limits fewer of them.

        :param sharing: the best way to share of all at once, and its worth as it is believed now.
        """
        self._search()
        if self._found is None:
            return None
        if self._right is not None:
            return self._found.efficiency * min(1.0, self._right) / _PRICE
        at_best = max((at for name, at in self._all.items() if name != TURNS), default=0.0)
        serial = serial_share(self._all.get(sharing or "", at_best), worth)
        return slowed_down(self._found.efficiency, serial) / _PRICE / _UNTRIED

    def _search(self) -> None:
        if self._searched or len(self._residents) < 2:
            return
        accounts = [resident.account for resident in self._in_order()]
        found, self._all = best_number(accounts, self._forecast), self._forecast(accounts)
        better = found is not None and found.efficiency > max(self._all.values(), default=0.0) * _CLEARLY
        self._found, self._searched = found if better else None, True

    def is_worth_copying(self, elapsed_s: float) -> bool:
        """Whether jobs have run for long enough to take it that copying them out and back will pay."""
        return _copying_s(self._leaving_bytes()) <= _COPY_SHARE * elapsed_s

    def take(self, now_s: float) -> None:
        """Set aside those that do better to wait; none if there are none by now."""
        self._search()
        if self._found is None:
            return
        # When some have ended it may be fewer that are best: not because more would not fit.
        self.at_once = self.at_once or self._found.at_once
        self._learned_of = frozenset(resident.account for resident in self._residents)
        leave = self._in_order()[self._found.at_once :]
        self._set_aside(frozenset(resident.account for resident in leave), now_s)

    def leave(self, now_s: float) -> None:
        """Nobody is set aside any more; who was comes back, and is to be there before anything is measured."""
        if self.aside:
            self._set_aside(frozenset(), now_s)

    def _set_aside(self, accounts: frozenset[int], now_s: float) -> None:
        self.aside = accounts
        self._away_since_s = {a: self._away_since_s.get(a, now_s) for a in accounts}
        self._settling.begin(accounts, now_s)

    def give_up(self) -> None:
        """It was worse than something else."""
        self.at_once = None

    def turn_is_over(self, now_s: float) -> bool:
        """Whether somebody has been away for a turn: those that are come first from now on, as `believed` will see.

        Who goes last by rank stays away for longer than that: the next turn begins for the others all the same.
        """
        began_s = max(self._turn_began_s, min(self._away_since_s.values(), default=now_s))
        if not self._found or now_s < began_s + turn_s(self._leaving_bytes()):
            return False
        ordered = self._in_order()
        waited = sorted(
            (resident for resident in ordered if resident.account in self.aside),
            key=lambda resident: self._away_since_s.get(resident.account, now_s),
        )
        there = [resident for resident in ordered if resident.account not in self.aside]
        self._first = {resident.account: n for n, resident in enumerate([*waited, *there])}
        self._found, self._searched, self._turn_began_s = None, False, now_s
        return True

    def is_settled(self, now_s: float, away: Collection[int], all_run: bool) -> bool:
        """See `Settling.is_over`."""
        return self._settling.is_over(now_s, away, all_run)

    def worth(self, reading: Reading) -> float:
        """Of the mode, as this was measured of it, less what is lost at the end of each turn."""
        measured = reading.measured * (1 - min(0.9, self.moving_s / turn_s(self._leaving_bytes())))
        if self._found:
            self._right = measured / self._found.efficiency
        return measured / _PRICE

    def _in_order(self) -> list[Resident]:
        def standing(resident: Resident) -> tuple[int, int, int]:
            return resident.rank, self._first.get(resident.account, len(self._first)), resident.account

        return sorted(self._residents, key=standing)

    def _leaving_bytes(self) -> int:
        leave = self._in_order()[self._found.at_once :] if self._found else ()
        return sum(resident.residue_bytes for resident in leave)
