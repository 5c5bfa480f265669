"""Which mode jobs run in: what each one yields is measured while they run.

A mode is a policy that permits come from: a sharing one, or taking turns. Two jobs that each fill the device, or the
GIL, can lose by running side by side, and of two ways of sharing the better one depends on the jobs. What is measured
of a mode is its efficiency (`scheduling.efficiency`): 1 is one job after the other.

The mode with the best forecast comes first. Where another one is known or believed to be better than what is measured
it is taken. Taking turns is believed to have 1; but where the mode in force has become slower that is put down to the
machine, which would slow turns down as well, until it lasts (`scheduling.modes`). Else another one is only tried, as
far as that can be afforded (`scheduling.trials`): a trial ends before another look could find more lost.

Of three jobs or more some may be better apart. How fast each one is beside the others says which ones that may be
(`scheduling.groups`): taking turns in these groups is a mode too, once sharing has been measured. So is to have fewer
of them there at once (`scheduling.fewer`); it is never only tried, since what is copied out takes time. While some are
set aside nothing tells what sharing would do by now: where that is in doubt when others come in (a turn's end), sharing
is tried, for which all come back.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from gpushare.scheduling.fewer import FewerSearch, Forecast, Resident
from gpushare.scheduling.group_search import GroupSearch
from gpushare.scheduling.groups import Groups
from gpushare.scheduling.meter import Jobs, Meter, Reading, mean
from gpushare.scheduling.modes import AS_MEASURED, MARGIN, Mode, Modes
from gpushare.scheduling.snapshot import FEWER, GROUPS, TURNS
from gpushare.scheduling.stay import Stay
from gpushare.scheduling.trials import CLOSE_LOOK_S, LOOK_S, TrialAccount
from gpushare.scheduling.yields import Yields, mode_yield

_WORTH = 1.25  # where sharing has this efficiency taking turns is not tried: solo times are not wrong by more
_CLOSE, _TRIALS_OF_CLOSE_ONES, _TRIALS_OF_MUCH_BETTER_ONES = 0.9, 3, 2
_CLEAR = 0.8  # of another mode's: less than that need not fill its window; the first iterations together may be slow
_LEAST_LOSS = 0.05  # of a trial's time, as it is expected
_WINDOWS_BEFORE_FEWER = 3  # of the mode in force; the first one alone may be slow
_IN_DOUBT, _MOST_DOUBT = 1.25, 32  # by which sharing may become faster in a turn without measuring it; turns


class Pace:
    """Chooses among the modes for the jobs at hand, and anew when jobs come, go or change their phase."""

    def __init__(self) -> None:
        self.mode: str | None = None  # None: fewer than two jobs are there
        self._search = GroupSearch()
        self._fewer = FewerSearch()
        self._forecast: Forecast = lambda counted, of=None: {}
        self._account = TrialAccount()
        self._modes = Modes()
        self._home = ""  # the mode that is not on trial
        self._stay = Stay()
        self._phases: dict[int, tuple[int, ...]] = {}
        self._meter = Meter()
        self._looked_s: float | None = None
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
        return Yields(modes, self.mode, self._account.lost_s, dict(self._solo_s))

    @property
    def on_trial(self) -> bool:
        """Whether the mode is only being tried."""
        return self.mode is not None and self.mode != self._home

    @property
    def settled(self) -> bool:
        """Whether the mode in force is measured, and there to stay."""
        return self.mode is not None and not self.on_trial and not self._stay.fresh

    @property
    def look_again_s(self) -> float:
        """When to look next, from now."""
        return CLOSE_LOOK_S if self.on_trial or self._stay.fresh else LOOK_S

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
        :param copied_out: accounts, wherever somebody may be set aside.
        :param begun: so many jobs have, those among them that have done nothing yet.
        """
        self._count_time(now_s)
        jobs = {account: job for account, job in jobs.items() if job.iterations > 0}
        self._forecast = forecast
        self._fewer.see([resident for resident in residents if resident.account in jobs], forecast)
        phases = {account: job.phase for account, job in jobs.items()}
        if phases.keys() != self._phases.keys():
            self._restart(now_s, jobs)
        elif phases != self._phases and self.mode is not None:
            self._begin_anew(now_s)
        self._phases = phases
        if self.mode is not None:
            self._solo_s |= {account: job.solo_s for account, job in jobs.items()}
            self._meter.count(jobs)
            if not self._fewer.is_settled(now_s, copied_out, begun <= len(jobs)):
                self._meter.wait(now_s)
            self._judge(now_s)
        return self.mode

    def _count_time(self, now_s: float) -> None:
        if self._looked_s is not None and self.mode is not None:
            passed_s = now_s - self._looked_s
            self._seconds[self.mode] = self._seconds.get(self.mode, 0.0) + passed_s
            self._account.count(passed_s, on_trial=self.on_trial)
        self._looked_s = now_s

    def _count_lost(self, now_s: float) -> None:
        """Since a mode was taken for what is believed of it: of what the one before would have done."""
        self._account.lose(self._meter.lost_s(now_s, self._stay.before))

    def _restart(self, now_s: float, jobs: Jobs) -> None:
        """Other jobs are there."""
        self._stop_trial(now_s)
        self._count_lost(now_s)
        self._meter.restart(jobs)
        self._stay.forget()
        before, were_fewer = self._modes, self.mode == FEWER
        found = dict(self._forecast(jobs.keys())) if len(jobs) > 1 else {}
        self._modes = Modes({name: Mode(worth) for name, worth in found.items()})
        self._search = GroupSearch()
        self._fewer.restart(jobs.keys())
        self.mode = None
        if found:
            best = max(found, key=lambda name: found[name])
            best = TURNS if found[best] <= found.get(TURNS, 0.0) * MARGIN else best
            stays = were_fewer and self._stay_fewer(before)
            if were_fewer and not stays and len(jobs) > (self._fewer.at_once or 0):
                self._fewer.give_up()
            self._take(now_s, FEWER if stays else best)

    def _stay_fewer(self, before: Modes) -> bool:
        """Whether it is still better to have fewer jobs there at once: of the other modes no more is believed than
        before, so that nobody comes back only to leave again."""
        modes = self._modes.at_most(before)
        worth = self._believed_of_fewer(modes)
        if worth is None or worth <= modes.worth_of(max(modes, key=modes.worth_of)) * MARGIN:
            return False
        self._modes = modes
        self._modes[FEWER] = Mode(worth)
        return True

    def _begin_anew(self, now_s: float) -> None:
        """The jobs have changed their phase: what was measured is only believed from now on."""
        self._stop_trial(now_s)
        self._count_lost(now_s)
        if self._home == FEWER:  # phases may be shorter than a window, but not everybody's turns
            self._fewer.turn_is_over(now_s)
        self._fewer.restart(self._phases.keys())
        self._modes.forget(list(self._modes))
        self._stay.forget()
        if self._home == FEWER:
            self._stay_or_not(now_s)
        else:
            self._modes.pop(FEWER, None)
            self._take(now_s, self._home)

    def _stay_or_not(self, now_s: float) -> None:
        """Fewer jobs at once, if that is still believed to be better: others, or another number of them."""
        known = self._modes.pop(FEWER)
        worth, other = self._believed_of_fewer(self._modes), max(self._modes, key=self._modes.worth_of)
        if worth is None or (not known.measured and worth <= self._modes.worth_of(other) * MARGIN):
            self._fewer.give_up()
            self._take(now_s, other)
            return
        self._modes[FEWER] = known if known.measured else Mode(worth)
        self._take(now_s, FEWER)

    def _believed_of_fewer(self, modes: Modes, here: float = 0.0) -> float | None:
        """:param here: what the mode in force may be worth, if that is more than is believed of it."""
        sharing = modes.best_sharing
        worth = modes.worth_of(sharing) if sharing else 0.0
        return self._fewer.believed(sharing, max(worth, here if sharing == self._home else 0.0))

    def _end_turn(self, now_s: float) -> None:
        """Others come in; or all do, to try whether sharing has come to be better."""
        self._stay.turns += 1
        if sharing := self._in_doubt():
            self._stay.turns = 0
            self._try(now_s, sharing)
        else:
            self._stay_or_not(now_s)

    def _in_doubt(self) -> str | None:
        """The way of sharing that may have become better than fewer jobs at once, if to try it can be afforded."""
        name, here = self._modes.best_sharing, self._here()
        worth = self._modes.worth_of(name) if name else 0.0
        if worth * _IN_DOUBT ** min(self._stay.turns, _MOST_DOUBT) <= here:
            return None
        lost_share = max(_LEAST_LOSS, 1 - worth / self._done_here())
        trial_s = self._meter.trial_s(here * _CLOSE - worth)
        return name if self._account.affords(self._fewer.moving_s + lost_share * trial_s) else None

    # Modes

    def _here(self) -> float:
        home = self._modes[self._home]
        return home.worth if home.measured else 0.0

    def _done_here(self) -> float:
        """The efficiency itself, which others may lose: of being set aside something is the price."""
        return self._known[FEWER].measured if self._home == FEWER and self._here() else self._here()

    def _note(self, name: str, reading: Reading) -> None:
        worth = reading.measured
        if name == GROUPS:
            worth = self._search.worth(reading)
        elif name == FEWER:
            worth = self._fewer.worth(reading)
        self._modes.note(name, worth, in_force=name == self._home)
        self._known[name] = reading

    def _switch(self, now_s: float, name: str) -> None:
        if name == FEWER:
            self._fewer.take(now_s)
        else:
            self._fewer.leave(now_s)
        self.mode = name
        self._meter.switch(now_s)

    def _try(self, now_s: float, name: str) -> None:
        self._modes[name].tried = True
        self._modes[name].trials += 1
        self._switch(now_s, name)

    def _take(self, now_s: float, name: str) -> None:
        """Run in this mode until another one is better."""
        another, self._home = name != self._home, name
        self._modes[name].readings.clear()
        groups = self._modes.get(GROUPS)
        if name != GROUPS and groups and groups.measured and groups.worth <= 0:
            del self._modes[GROUPS]  # they put jobs off; others, or of other rates, may be found
            self._search.forget()
        self._stay.begin(fresh=not self._modes[name].measured, another=another)
        self._switch(now_s, name)

    # Verdicts

    def _judge(self, now_s: float) -> None:
        reading = self._meter.read(now_s)
        if self.on_trial:
            self._judge_trial(now_s, reading)
        elif reading and reading.measured <= 0:  # all stood still, which no mode makes jobs do
            if reading.full and self.mode == FEWER:
                before = None if self._stay.fresh else self._modes[FEWER].worth
                self._modes.note(FEWER, 0.0, in_force=True)  # but others, who might go on, were set aside
                self._leave_fewer(now_s, before)
            elif reading.full:
                self._meter.begin_window(now_s)
                self._stay.disturb()
        elif reading and reading.full:
            self._meter.begin_window(now_s)
            self._judge_home(now_s, reading)
        elif reading and self._stay.fresh and self._home != FEWER:
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
        known, fresh = self._modes[self._home], self._stay.fresh
        first, before = not known.measured, known.worth
        changed = self._stay.has_changed(reading)
        alone = first or self._stay.is_alone(changed)
        self._note(self._home, reading if alone else mean([reading, self._known[self._home]]))
        if changed:
            self._modes.forget([name for name in self._modes if name != self._home])
        self._stay.count(reading, alone=alone, changed=changed)
        self._doubt_turns()
        self._look_for_groups(self._home, reading)
        found_now = self._look_for_fewer(reading)
        other = self._modes.best_beside(self._home)
        due = fresh or changed or self._stay.left == 0 or not self._here()
        may_leave = due or (found_now and other == FEWER)
        undecided = other and self._here() and self._modes[other].readings
        if other and may_leave and not undecided and self._modes.worth_of(other) > self._here() * MARGIN:
            if self._home != FEWER:
                self._leave_for(now_s, other)
            elif first:  # it may be slow, since memory has just been copied: the next window tells
                self._stay.disturb()
                self._stay.fresh = True
            else:
                self._leave_fewer(now_s, None if fresh else before)
            return
        self._stay.before = None
        if not changed and (name := self._to_try()):
            self._try(now_s, name)
        elif self._home == FEWER and self._fewer.turn_is_over(now_s):
            self._end_turn(now_s)

    def _doubt_turns(self) -> None:
        """Where sharing has come to yield less than turns have by definition, and still does, it may be slow itself."""
        turns = self._modes.get(TURNS)
        if not turns or turns.measured or self._home in AS_MEASURED or self._stay.left:
            return
        if self._stay.is_low(max(self._here(), turns.worth) * MARGIN < 1):
            turns.worth = 1.0

    def _look_for_groups(self, mode: str, reading: Reading) -> None:
        """By how all share in a mode. Groups that are in force, or on trial, come to an end first."""
        known = self._modes.get(GROUPS)
        if mode in AS_MEASURED or len(reading.rates) < 3 or self._home == GROUPS:
            return
        if known and (known.readings or self._stay.left):
            return
        least = max(1.0, self._here(), known.worth if known and known.measured else 0.0)
        if believed := self._search.find(reading, least * MARGIN):
            self._modes[GROUPS] = Mode(believed)

    def _look_for_fewer(self, reading: Reading) -> bool:
        """By what the mode in force has come to do, its last window alone too; whether it was found now.

        Turns have 1 by definition: nothing is to be waited for.
        """
        known = self._modes.get(FEWER)
        too_soon = self._home not in AS_MEASURED and self._stay.windows < _WINDOWS_BEFORE_FEWER
        if too_soon or (known and known.measured):
            return False
        most = max(self._here(), reading.measured)
        worth = self._believed_of_fewer(self._modes, most) if len(self._phases) > 2 else None
        if (
            worth is None
            or worth <= most * MARGIN
            or not self._fewer.is_worth_copying(self._account.elapsed_s)
        ):
            return False
        self._modes[FEWER] = Mode(worth)
        return known is None

    def _leave_fewer(self, now_s: float, before: float | None) -> None:
        """All come back.

        :param before: what it was known to be worth up to this window. It may only have stalled: as much is believed
            of it once more.
        """
        other = self._modes.best_beside(FEWER) or TURNS
        self._fewer.give_up()
        self._modes.forget([other])  # the machine may have slowed down, which nothing has told of the others
        self._leave_for(now_s, other)
        if before is not None:
            self._modes[FEWER] = Mode(before)

    def _leave_for(self, now_s: float, other: str) -> None:
        """Another mode is better, as measured or believed."""
        self._count_lost(now_s)
        self._stay.before = None if self._modes[other].measured else self._done_here()
        self._stay.lengthen()
        self._take(now_s, other)

    # Trials

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
        return name if self._account.affords(lost_share * trial_s) else None

    def _is_due(self, name: str) -> bool:
        if name in (self._home, FEWER) or (name == TURNS and self._here() >= _WORTH):
            return False
        return self._stay.left == 0 or not self._modes[name].tried

    def _judge_trial(self, now_s: float, reading: Reading | None) -> None:
        if reading and reading.measured <= 0:  # all stood still, which no mode makes jobs do
            self._end_trial(now_s, better=False, for_long=False)
            return
        here = self._here()
        over = not self._account.affords(self._meter.lost_s(now_s, self._done_here()))
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
        better = tried.worth > here * MARGIN and not again
        self._end_trial(now_s, better=better, for_long=not again)
        if again:
            tried.tried = False
        else:
            tried.readings.clear()

    def _end_trial(self, now_s: float, *, better: bool, for_long: bool = True) -> None:
        tried = self.mode or self._home
        self._stop_trial(now_s)
        if for_long and (better or self._home != FEWER):
            self._stay.lengthen()
        self._stay.before = None
        if self._home != FEWER:
            self._take(now_s, tried if better else self._home)
        elif better:
            self._fewer.give_up()
            self._take(now_s, tried)
        else:
            self._stay_or_not(now_s)

    def _stop_trial(self, now_s: float) -> None:
        if self.on_trial:
            self._account.lose(self._meter.lost_s(now_s, self._done_here()))
            self.mode = self._home
