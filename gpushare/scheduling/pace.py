"""Which mode jobs run in: what each one yields is measured while they run.

A mode is a policy that permits come from: a sharing one, or taking turns. Two jobs that each fill the device, or the
GIL, can lose by running side by side, and of two ways of sharing the better one depends on the jobs. What is measured
of a mode is its efficiency (`scheduling.efficiency`): 1 is one job after the other.

The mode with the best forecast comes first. Where another one is known or believed to be better than what is measured
it is taken. Taking turns is believed to have 1; but where the mode in force has become slower that is put down to the
machine, which would slow turns down as well, until it lasts (`scheduling.modes`). Else another one is only tried: at
no moment have trials lost more than `TRIALS_SHARE` of the time in which two jobs or more were there, as measured. A
trial ends before another look could find more lost; how late looks may come is learned, so only the first one that is
later than any before can find a little more.

Of three jobs or more some may be better apart. How fast each one is beside the others says which ones that may be
(`scheduling.groups`): taking turns in these groups is a mode too, once sharing has been measured. So is to have fewer
of them there at once (`scheduling.fewer`); it is never only tried, since what is copied out takes time.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from gpushare.scheduling.fewer import FewerSearch, Forecast, Resident
from gpushare.scheduling.group_search import GroupSearch
from gpushare.scheduling.groups import Groups
from gpushare.scheduling.meter import Jobs, Meter, Reading, mean
from gpushare.scheduling.modes import AS_MEASURED, Mode, Modes
from gpushare.scheduling.snapshot import FEWER, GROUPS, TURNS
from gpushare.scheduling.yields import Yields, mode_yield

TRIALS_SHARE = 0.01
LOOK_S, CLOSE_LOOK_S = 0.5, 0.05  # between two looks; while a verdict is near
ALLOWED_LATE_S = 0.05  # that a look may come late, as long as none came later

_WORTH = 1.25  # where sharing has this efficiency taking turns is not tried: solo times are not wrong by more
_MARGIN = 1.02  # by which another mode must be better
_CHANGED = 0.15  # an efficiency that has moved by this share is that of other iterations
_FIRST_STAY, _LONGEST_STAY = 16, 256  # windows before another mode is tried again
_WINDOWS_OF_A_CHANGE = 4
_WINDOWS_OF_DOUBT = 6  # below 1, until it may be the mode in force that is slow, and not the machine
_CLOSE, _TRIALS_OF_CLOSE_ONES, _TRIALS_OF_MUCH_BETTER_ONES = 0.9, 3, 2
_CLEAR = 0.8  # of another mode's: less than that need not fill its window; the first iterations together may be slow
_LEAST_LOSS = 0.05  # of a trial's time, as it is expected


class Pace:
    """Chooses among the modes for the jobs at hand, and anew when jobs come, go or change their phase."""

    def __init__(self) -> None:
        self.mode: str | None = None  # None: fewer than two jobs are there
        self._search = GroupSearch()
        self._fewer = FewerSearch()
        self._residents: Sequence[Resident] = ()
        self._forecast: Forecast = lambda counted, of=None: {}
        self._forecasts: dict[str, float] = {}  # of the modes that are known from the beginning
        self._modes = Modes()
        self._home = ""  # the mode that is not on trial
        self._fresh = False  # home was taken for what is believed of it
        self._before: float | None = None  # efficiency of the mode that was left for a belief
        self._stay, self._windows_left = _FIRST_STAY, 0
        self._windows_here, self._reference = 0, 0.0  # at home; its efficiency when it was taken
        self._windows_low = 0  # of late, in which the mode in force had less than turns by their definition
        self._unlike = False  # the next window is not to be put together with those before it
        self._phases: dict[int, tuple[int, ...]] = {}
        self._meter = Meter()
        self._looked_s: float | None = None
        self._elapsed_s = self._lost_s = 0.0
        self._latest_s = ALLOWED_LATE_S
        self._solo_s: dict[int, float] = {}
        self._seconds: dict[str, float] = {}
        self._known: dict[str, Reading] = {}

    @property
    def groups(self) -> Groups:
        """Of jobs that take turns; none where another mode is in force."""
        return self._search.groups if self.mode == GROUPS else ()

    @property
    def aside(self) -> frozenset[int]:
        """Accounts that run no iterations; none where another mode is in force."""
        return self._fewer.aside if self.mode == FEWER else frozenset()

    @property
    def at_once(self) -> int | None:
        """How many jobs were found to do more than all of them; None if none were, or these did not."""
        return self._fewer.at_once

    @property
    def yields(self) -> Yields:
        """Of all modes in the whole run, each as last measured."""
        modes = {name: mode_yield(seconds, self._known.get(name)) for name, seconds in self._seconds.items()}
        return Yields(modes, self.mode, self._lost_s, dict(self._solo_s))

    @property
    def on_trial(self) -> bool:
        """Whether the mode is only being tried."""
        return self.mode is not None and self.mode != self._home

    @property
    def settled(self) -> bool:
        """Whether the mode in force is measured, and there to stay."""
        return self.mode is not None and not self.on_trial and not self._fresh

    @property
    def look_again_s(self) -> float:
        """When to look next, from now."""
        return CLOSE_LOOK_S if self.on_trial or self._fresh else LOOK_S

    def look(
        self,
        now_s: float,
        jobs: Jobs,
        forecast: Forecast,
        *,
        residents: Sequence[Resident] = (),
        copied_out: Collection[int] = (),
        begun: int = 0,
    ) -> str | None:
        """The mode for the jobs from now on; None for fewer than two. To be called every `look_again_s`.

        :param jobs: those that have done nothing yet do not count: with a saved profile a job is known while it is
            importing and loading, which is no mode's doing.
        :param forecast: the efficiency of each mode for these accounts, the first of equals preferred; called when the
            jobs that count change, or fewer at once may do more.
        :param residents: the jobs; none where nobody may be set aside.
        :param copied_out: accounts.
        :param begun: so many jobs have, those among them that have done nothing yet.
        """
        self._count_time(now_s)
        jobs = {account: job for account, job in jobs.items() if job.iterations > 0}
        self._residents = [resident for resident in residents if resident.account in jobs]
        self._forecast = forecast
        phases = {account: job.phase for account, job in jobs.items()}
        if phases.keys() != self._phases.keys():
            self._restart(now_s, jobs)
        elif phases != self._phases and self.mode is not None:
            self._begin_anew(now_s)
        self._phases = phases
        if self.mode is not None:
            self._solo_s |= {account: job.solo_s for account, job in jobs.items()}
            self._meter.count(jobs)
            if self.mode == FEWER and not self._fewer.is_settled(now_s, copied_out, begun <= len(jobs)):
                self._meter.switch(now_s)
            else:
                self._judge(now_s)
        return self.mode

    def _count_time(self, now_s: float) -> None:
        if self._looked_s is not None and self.mode is not None:
            passed_s = now_s - self._looked_s
            self._seconds[self.mode] = self._seconds.get(self.mode, 0.0) + passed_s
            self._elapsed_s += passed_s
            if self.on_trial:
                self._latest_s = max(self._latest_s, passed_s - CLOSE_LOOK_S)
        self._looked_s = now_s

    def _restart(self, now_s: float, jobs: Jobs) -> None:
        """Other jobs are there."""
        self._stop_trial(now_s)
        self._meter.restart(jobs)
        self._stay, self._windows_left, self._before = _FIRST_STAY, 0, None
        found = dict(self._forecast(jobs.keys())) if len(jobs) > 1 else {}
        before, self._forecasts = self._modes, found
        self._modes = Modes({name: Mode(worth) for name, worth in found.items()})
        self._search = GroupSearch()
        self._fewer.restart(jobs.keys())
        were_fewer, self.mode = self.mode == FEWER, None
        if found:
            best = max(found, key=lambda name: found[name])
            best = TURNS if found[best] <= found.get(TURNS, 0.0) * _MARGIN else best
            self._take(now_s, FEWER if were_fewer and self._stay_fewer(before) else best)

    def _stay_fewer(self, before: Modes) -> bool:
        """Whether it is still better to have fewer jobs there at once: of the other modes no more is believed than
        before, so that nobody comes back only to leave again."""
        worth = self._fewer.find(self._residents, self._forecast, 1.0)
        if worth is None:
            return False
        for name, mode in self._modes.items():
            mode.worth = min(mode.worth, before[name].worth if name in before else mode.worth)
        self._modes[FEWER] = Mode(worth)
        return True

    def _begin_anew(self, now_s: float) -> None:
        """The jobs have changed their phase: what was measured is only believed from now on."""
        self._stop_trial(now_s)
        self._fewer.restart(self._phases.keys())
        self._modes.forget(list(self._modes))
        self._stay, self._windows_left, self._before = _FIRST_STAY, 0, None
        if self._home == FEWER:
            self._stay_or_not(now_s)
        else:
            self._modes.pop(FEWER, None)
            self._take(now_s, self._home)

    def _stay_or_not(self, now_s: float) -> None:
        """Fewer jobs at once, if that is still forecast to be better: others, or another number of them."""
        worth = self._fewer.find(self._residents, self._forecast, 1.0)
        known = self._modes.pop(FEWER)
        if worth is None:
            self._take(now_s, self._modes.best_beside(FEWER) or TURNS)
            return
        self._modes[FEWER] = known if known.measured else Mode(worth)
        self._take(now_s, FEWER)

    # Modes

    def _here(self) -> float:
        home = self._modes[self._home]
        return home.worth if home.measured else 0.0

    def _note(self, name: str, reading: Reading) -> None:
        worth = reading.measured
        if name == GROUPS:
            worth = self._search.worth(reading)
        elif name == FEWER:
            worth = self._fewer.worth(reading, self._residents)
        self._modes.note(name, worth, in_force=name == self._home)
        self._known[name] = reading

    def _switch(self, now_s: float, name: str) -> None:
        self.mode = name
        self._meter.switch(now_s)

    def _take(self, now_s: float, name: str) -> None:
        """Run in this mode until another one is better."""
        self._unlike = self._unlike or name != self._home
        self._home = name
        self._modes[name].readings.clear()
        groups = self._modes.get(GROUPS)
        if name != GROUPS and groups and groups.measured and groups.worth <= 0:
            del self._modes[GROUPS]  # they put jobs off; others, or of other rates, may be found
            self._search.forget()
        if name == FEWER:
            self._fewer.take(self._residents, now_s)
        elif self._fewer.aside:
            self._fewer.leave(worse=False)
        self._fresh = not self._modes[name].measured
        self._windows_here, self._windows_low, self._reference = 0, 0, 0.0
        self._switch(now_s, name)

    # Verdicts

    def _judge(self, now_s: float) -> None:
        reading = self._meter.read(now_s)
        if self.on_trial:
            self._judge_trial(now_s, reading)
        elif reading and reading.measured <= 0:  # all stood still, which no mode makes jobs do
            if reading.full and self.mode == FEWER:
                self._modes.note(FEWER, 0.0, in_force=True)  # but others, who might go on, were set aside
                self._leave_for(now_s, self._modes.best_beside(FEWER) or TURNS)
            elif reading.full:
                self._meter.begin_window(now_s)
                self._unlike = True
        elif reading and reading.full:
            self._meter.begin_window(now_s)
            self._judge_home(now_s, reading)
        elif reading and self._fresh and self._home != FEWER:
            self._judge_early(now_s, reading)

    def _judge_early(self, now_s: float, reading: Reading) -> None:
        """A clear case need not fill its window."""
        at_most = reading.measured + reading.doubt
        others = self._modes.others(self._home, at_most, in_force=True)
        if at_most < max(others.values(), default=0.0) * _CLEAR:
            self._note(self._home, reading)
            self._look_for_groups(self._home, reading)
            self._leave_for(now_s, self._modes.best_beside(self._home) or TURNS)

    def _judge_home(self, now_s: float, reading: Reading) -> None:
        fresh, first = self._fresh, not self._modes[self._home].measured
        changed = self._has_changed(reading)
        alone = first or changed or self._unlike
        self._note(self._home, reading if alone else mean([reading, self._known[self._home]]))
        if changed:
            self._modes.forget([name for name in self._modes if name != self._home])
            self._windows_here = 0
            self._stay, self._windows_left = _FIRST_STAY, 0
        if alone or not self._reference:
            self._reference = reading.measured
        self._unlike = changed  # that came about in the middle of a window
        self._fresh = False
        self._windows_here += 1
        self._windows_left = max(0, self._windows_left - 1)
        self._doubt_turns()
        self._look_for_groups(self._home, reading)
        self._look_for_fewer()
        other = self._modes.best_beside(self._home)
        may_leave = fresh or changed or self._windows_left == 0 or not self._here()
        undecided = other and self._here() and self._modes[other].readings
        if other and may_leave and not undecided and self._modes.worth_of(other) > self._here() * _MARGIN:
            self._leave_for(now_s, other)
            return
        self._before = None
        if not changed and (name := self._to_try()):
            self._modes[name].tried = True
            self._modes[name].trials += 1
            self._switch(now_s, name)
        elif self._home == FEWER and self._fewer.turn_is_over(self._residents, now_s):
            self._stay_or_not(now_s)

    def _doubt_turns(self) -> None:
        """Where sharing has come to yield less than turns have by definition, and still does, it may be slow itself."""
        turns = self._modes.get(TURNS)
        if not turns or turns.measured or self._home in AS_MEASURED or self._windows_left:
            return
        is_low = max(self._here(), turns.worth) * _MARGIN < 1
        self._windows_low = self._windows_low + 1 if is_low else 0
        if self._windows_low >= _WINDOWS_OF_DOUBT:
            turns.worth = 1.0

    def _look_for_groups(self, mode: str, reading: Reading) -> None:
        """By how all share in a mode. Groups that are in force, or on trial, come to an end first."""
        known = self._modes.get(GROUPS)
        if mode in AS_MEASURED or len(reading.rates) < 3 or self._home == GROUPS:
            return
        if known and (known.readings or self._windows_left):
            return
        least = max(1.0, self._here(), known.worth if known and known.measured else 0.0)
        if believed := self._search.find(reading, least * _MARGIN):
            self._modes[GROUPS] = Mode(believed)

    def _look_for_fewer(self) -> None:
        """Once for the same jobs; what curves say of all at once was wrong by as much as it was measured to be."""
        if FEWER in self._modes or len(self._residents) < 3:
            return
        sharing = [name for name in self._forecasts if name != TURNS and self._modes[name].measured]
        right = [self._modes[name].worth / self._forecasts[name] for name in sharing if self._forecasts[name]]
        worth = self._fewer.find(self._residents, self._forecast, min(right, default=1.0))
        if worth is not None and self._fewer.is_worth_copying(self._residents, self._elapsed_s):
            self._modes[FEWER] = Mode(worth)

    def _has_changed(self, reading: Reading) -> bool:
        moved = abs(reading.measured - self._reference)
        surely = moved > _CHANGED * self._reference + reading.doubt
        return surely and self._windows_here >= _WINDOWS_OF_A_CHANGE

    def _leave_for(self, now_s: float, other: str) -> None:
        """Another mode is better, as measured or believed."""
        self._lost_s += self._meter.lost_s(now_s, self._before)
        if self._home == FEWER:
            self._lost_s += self._fewer.leaving_s if self._before else 0.0
            self._fewer.leave(worse=True)
        self._before = None if self._modes[other].measured else self._here()
        self._lengthen_stay()
        self._take(now_s, other)

    def _lengthen_stay(self) -> None:
        self._windows_left, self._stay = self._stay, min(2 * self._stay, _LONGEST_STAY)

    # Trials

    @property
    def _left_s(self) -> float:
        """What trials may still lose; below nought after a mode was taken for a belief that was wrong."""
        return TRIALS_SHARE * self._elapsed_s - self._lost_s

    @property
    def _until_next_look_s(self) -> float:
        """At most, in a trial: what it may lose before anybody sees it."""
        return CLOSE_LOOK_S + self._latest_s

    def _to_try(self) -> str | None:
        """The mode whose trial is due and can be afforded; None if there is none."""
        due = [name for name in self._modes if self._is_due(name)]
        if not due or not self._here() or self._home == FEWER:
            return None
        name = max(due, key=self._modes.worth_of)
        if GROUPS in self._modes:  # of three the one that seems worst would not be looked at again
            name = min(due, key=lambda one: (self._modes[one].trials, -self._modes.worth_of(one)))
        lost_share = max(_LEAST_LOSS, 1 - self._modes.worth_of(name) / self._here())
        trial_s = self._meter.trial_s(self._here() * _CLOSE - self._modes.worth_of(name))
        affordable = self._left_s >= lost_share * trial_s + self._until_next_look_s
        return name if affordable else None

    def _is_due(self, name: str) -> bool:
        if name in (self._home, FEWER) or (name == TURNS and self._here() >= _WORTH):
            return False
        return self._windows_left == 0 or not self._modes[name].tried

    def _judge_trial(self, now_s: float, reading: Reading | None) -> None:
        here = self._here()
        over = self._meter.lost_s(now_s, here) + self._until_next_look_s > self._left_s
        if reading and (over or reading.full or reading.measured + reading.doubt < here * _CLOSE):
            self._conclude_trial(now_s, reading)
        elif over:
            self._modes[self.mode or self._home].readings.clear()
            self._end_trial(now_s, better=False)

    def _conclude_trial(self, now_s: float, reading: Reading) -> None:
        """In a short window a mode that is close to the one in force may be the better one: it is tried again soon."""
        here, tried = self._here(), self._modes[self.mode or self._home]
        tried.readings.append(reading)
        # Or is it the machine that has become faster? (What groups are worth is not only their efficiency.)
        much_better = reading.measured * _CLOSE > here and self.mode != GROUPS
        if much_better and len(tried.readings) < _TRIALS_OF_MUCH_BETTER_ONES:
            self._end_trial(now_s, better=False, for_long=False)
            tried.tried = False
            return
        found = mean(tried.readings)
        self._note(self.mode or self._home, found)
        self._look_for_groups(self.mode or self._home, found)
        close = _CLOSE < tried.worth / here < 1 / _CLOSE
        again = close and len(tried.readings) < _TRIALS_OF_CLOSE_ONES
        better = tried.worth > here * _MARGIN and not again
        self._end_trial(now_s, better=better, for_long=not again)
        if again:
            tried.tried = False
        else:
            tried.readings.clear()

    def _end_trial(self, now_s: float, *, better: bool, for_long: bool = True) -> None:
        tried = self.mode or self._home
        self._stop_trial(now_s)
        if for_long:
            self._lengthen_stay()
        self._before = None
        self._take(now_s, tried if better else self._home)

    def _stop_trial(self, now_s: float) -> None:
        if self.on_trial:
            self._lost_s += self._meter.lost_s(now_s, self._here())
            self.mode = self._home
