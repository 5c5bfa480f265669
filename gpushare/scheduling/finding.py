"""Finds the modes that are not known from the beginning: which jobs take turns, and how many are there at once.

Both are found for the jobs at hand and come again and again as these change; whether they are good is measured
(`scheduling.pace`). This is what they are found by, and what is to be kept of it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from gpushare.scheduling.efficiency import serial_share
from gpushare.scheduling.fewer import FewerSearch, Forecast, Resident
from gpushare.scheduling.group_search import GroupSearch
from gpushare.scheduling.groups import Groups
from gpushare.scheduling.meter import Reading
from gpushare.scheduling.modes import MARGIN, Mode, Modes
from gpushare.scheduling.snapshot import FEWER, GROUPS, TURNS


class Finder:
    """What is believed of GROUPS and FEWER, for the jobs of the last `see`."""

    def __init__(self) -> None:
        self._groups = GroupSearch()
        self._fewer = FewerSearch()
        self._residents: Sequence[Resident] = ()
        self._forecast: Forecast = lambda counted, of=None: {}
        self._forecasts: dict[str, float] = {}  # of the modes that are known from the beginning

    @property
    def groups(self) -> Groups:
        """Those that were found."""
        return self._groups.groups

    @property
    def aside(self) -> frozenset[int]:
        """Accounts that were found to do better to wait."""
        return self._fewer.aside

    @property
    def at_once(self) -> int | None:
        """How many jobs were found to do more than all of them; None if none were, or these did not."""
        return self._fewer.at_once

    @property
    def leaving_s(self) -> float:
        """How long it last took until those set aside were away."""
        return self._fewer.leaving_s

    def see(self, residents: Sequence[Resident], forecast: Forecast) -> None:
        """The jobs as they are now; no residents where nobody may be set aside."""
        self._residents, self._forecast = residents, forecast

    def restart(self, accounts: Collection[int]) -> dict[str, float]:
        """Other jobs are there: the forecast of each mode that is known for two jobs or more."""
        self._groups = GroupSearch()
        self._fewer.restart(accounts)
        self._forecasts = dict(self._forecast(accounts)) if len(accounts) > 1 else {}
        return self._forecasts

    def begin_anew(self, accounts: Collection[int]) -> None:
        """The jobs have become others."""
        self._fewer.restart(accounts)

    def entered(self, name: str, now_s: float) -> None:
        """This mode is in force from now on."""
        if name == FEWER:
            self._fewer.take(self._residents, now_s)
        elif self._fewer.aside:
            self._fewer.leave(now_s)

    def worth(self, name: str, reading: Reading) -> float:
        """Of the mode, as this was measured of it."""
        if name == GROUPS:
            return self._groups.worth(reading)
        return self._fewer.worth(reading, self._residents) if name == FEWER else reading.measured

    def better_groups(self, reading: Reading, least: float) -> float | None:
        """What is believed of other groups than those found; None if that is not more than `least`.

        :param reading: of all jobs side by side.
        """
        return self._groups.find(reading, least)

    def forget_groups(self) -> None:
        """There are none."""
        self._groups.forget()

    def fewer(self, modes: Modes) -> float | None:
        """What is believed of fewer jobs at once; None if curves don't make it better than all at once.

        :param modes: as they are believed now. What sharing is worth less than curves say limits fewer jobs too.
        """
        if len(self._residents) < 3:
            return None
        sharing = (
            (modes[name], at) for name, at in self._forecasts.items() if name in modes and name != TURNS
        )
        serial = max((serial_share(at, mode.worth) for mode, at in sharing), default=0.0)
        return self._fewer.find(self._residents, self._forecast, serial)

    def still_fewer(self, modes: Modes, before: Modes) -> Modes | None:
        """What is believed of all modes where fewer at once still do more than all, among other jobs; None if not.

        :param modes: by their forecasts for the jobs that are there now.
        :param before: of those that were. No more is believed of sharing than that, so that nobody comes back only to
            leave again.
        """
        worth = {name: min(mode.worth, before.get(name, mode).worth) for name, mode in modes.items()}
        kept = Modes({name: Mode(of) for name, of in worth.items()})
        fewer = self.fewer(kept)
        if fewer is None or fewer <= max(worth.values()) * MARGIN:
            return None
        kept[FEWER] = Mode(fewer)
        return kept

    def is_worth_copying(self, elapsed_s: float) -> bool:
        """Whether jobs have run for long enough to take it that setting some aside will pay."""
        return self._fewer.is_worth_copying(self._residents, elapsed_s)

    def turn_is_over(self, now_s: float) -> bool:
        """Whether somebody has been away for a turn: others are found from now on."""
        return self._fewer.turn_is_over(self._residents, now_s)

    def give_up_fewer(self) -> None:
        """It was worse than something else."""
        self._fewer.give_up()

    def is_settled(self, now_s: float, away: Collection[int], all_run: bool) -> bool:
        """Whether all are there, or away, as they are meant to be (`FewerSearch.is_settled`)."""
        return self._fewer.is_settled(now_s, away, all_run)
