"""The mode in force, what is known of it and of the others, and how it is left for another one."""

from __future__ import annotations

from collections.abc import Mapping

from gpushare.scheduling.fewer import FewerSearch
from gpushare.scheduling.group_search import GroupSearch
from gpushare.scheduling.meter import Meter, Reading
from gpushare.scheduling.modes import AS_MEASURED, MARGIN, Mode, Modes
from gpushare.scheduling.progress import Jobs
from gpushare.scheduling.snapshot import FEWER, GROUPS, TURNS
from gpushare.scheduling.stay import Stay
from gpushare.scheduling.trials import TrialAccount

CLOSE = 0.9  # of another mode's efficiency: it takes a full window to tell them apart
_LEAST_LOSS = 0.05  # of a trial's time, as it is expected


class InForce:
    """`mode` is the one that jobs run in, None while fewer than two are there; `home` is the one that is not on trial.

    `modes`: of the jobs at hand, what each is worth; `known`: of each in the whole run, what was last measured.
    """

    def __init__(self) -> None:
        self.mode: str | None = None
        self.home = ""
        self.modes = Modes()
        self.known: dict[str, Reading] = {}
        self.stay = Stay()
        self.meter = Meter()
        self.account = TrialAccount()
        self.group_search = GroupSearch()
        self.fewer_search = FewerSearch()

    def restart(self, now_s: float, jobs: Jobs, believed: Mapping[str, float]) -> None:
        """These are the jobs from now on, and this is believed of each mode; one has to be taken next, if any is."""
        self.count_lost(now_s)
        self.meter.restart(jobs)
        self.stay.forget()
        self.modes = Modes({name: Mode(worth) for name, worth in believed.items()})
        self.group_search = GroupSearch()
        self.fewer_search.restart(jobs.keys())
        self.mode = None

    @property
    def on_trial(self) -> bool:
        """Whether the mode is only being tried."""
        return self.mode is not None and self.mode != self.home

    @property
    def here(self) -> float:
        """What the mode that is not on trial is worth; 0 as long as that is only believed."""
        home = self.modes[self.home]
        return home.worth if home.measured else 0.0

    @property
    def done_here(self) -> float:
        """The efficiency itself, which others may lose: of being set aside something is the price."""
        return self.known[FEWER].measured if self.home == FEWER and self.here else self.here

    def note(self, name: str, reading: Reading) -> None:
        """This was measured of the mode."""
        worth = reading.measured
        if name == GROUPS:
            worth = self.group_search.worth(reading)
        elif name == FEWER:
            worth = self.fewer_search.worth(reading)
        self.modes.note(name, worth, in_force=name == self.home)
        self.known[name] = reading

    def look_for_groups(self, mode: str, reading: Reading) -> None:
        """By how all share in a mode. Groups that are in force, or on trial, come to an end first."""
        known = self.modes.get(GROUPS)
        if mode in AS_MEASURED or len(reading.rates) < 3 or self.home == GROUPS:
            return
        if known and (known.readings or self.stay.left):
            return
        least = max(1.0, self.here, known.worth if known and known.measured else 0.0)
        if believed := self.group_search.find(reading, least * MARGIN):
            self.modes[GROUPS] = Mode(believed)

    def affords_trial(self, name: str, beside_s: float = 0.0) -> bool:
        """Whether as much may be lost as it takes to measure this mode; the one that is not on trial was measured.

        :param beside_s: what is lost by the way there and back.
        """
        worth = self.modes.worth_of(name)
        lost_share = max(_LEAST_LOSS, 1 - worth / self.done_here)
        trial_s = self.meter.trial_s(self.here * CLOSE - worth, self._turns_in(name))
        return self.account.affords(beside_s + lost_share * trial_s)

    def begin_trial(self, now_s: float, name: str) -> None:
        """Run in this mode to measure it."""
        self.modes[name].tried = True
        self.modes[name].trials += 1
        self._switch(now_s, name)

    def stop_trial(self, now_s: float) -> None:
        """The other mode is in force again, and has to be taken next."""
        if self.on_trial:
            self.account.lose(self.meter.lost_s(now_s, self.done_here))
            self.mode = self.home

    def take(self, now_s: float, name: str) -> None:
        """Run in this mode until another one is better."""
        another, self.home = name != self.home, name
        self.modes[name].readings.clear()
        groups = self.modes.get(GROUPS)
        if name != GROUPS and groups and groups.measured and groups.worth <= 0:
            del self.modes[GROUPS]  # they put jobs off; others, or of other rates, may be found
            self.group_search.forget()
        self.stay.begin(fresh=not self.modes[name].measured, another=another)
        self._switch(now_s, name)

    def leave_for(self, now_s: float, other: str) -> None:
        """Another mode is better, as measured or believed."""
        self.count_lost(now_s)
        self.stay.before = None if self.modes[other].measured else self.done_here
        self.stay.lengthen()
        self.take(now_s, other)

    def count_lost(self, now_s: float) -> None:
        """Since a mode was taken for what is believed of it: of what the one before would have done."""
        self.account.lose(self.meter.lost_s(now_s, self.stay.before))

    def _switch(self, now_s: float, name: str) -> None:
        if name == FEWER:
            self.fewer_search.take(now_s)
        else:
            self.fewer_search.leave(now_s)
        self.mode = name
        self.meter.switch(now_s, self._turns_in(name))

    def _turns_in(self, name: str) -> int:
        return {TURNS: self.meter.jobs, GROUPS: len(self.group_search.groups)}.get(name, 0)
