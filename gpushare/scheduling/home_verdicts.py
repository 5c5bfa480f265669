"""What the mode in force has done, and what follows: it stays, another one is taken or tried, others come in."""

from __future__ import annotations

from gpushare.scheduling.fewer_verdicts import FewerVerdicts
from gpushare.scheduling.in_force import InForce
from gpushare.scheduling.meter import Reading, mean
from gpushare.scheduling.modes import AS_MEASURED, MARGIN
from gpushare.scheduling.snapshot import FEWER, TURNS
from gpushare.scheduling.trial_verdicts import TrialVerdicts

_CLEAR = 0.8  # of another mode's: less than that need not fill its window; the first iterations together may be slow


class HomeVerdicts:
    """Of the mode that is not on trial."""

    def __init__(self, in_force: InForce, fewer: FewerVerdicts, trials: TrialVerdicts) -> None:
        self._in_force = in_force
        self._fewer_verdicts = fewer
        self._trial_verdicts = trials

    def judge(self, now_s: float, reading: Reading) -> None:
        """This is what it has done in its window so far."""
        now = self._in_force
        if reading.measured <= 0:  # all stood still, which no mode makes jobs do
            if reading.full:
                self._stood_still(now_s)
        elif reading.full:
            now.meter.begin_window(now_s)
            self._judge_window(now_s, reading)
        elif now.stay.fresh and now.home != FEWER:
            self._judge_early(now_s, reading)

    def _stood_still(self, now_s: float) -> None:
        now = self._in_force
        if now.home == FEWER:
            before = None if now.stay.fresh else now.modes[FEWER].worth
            now.modes.note(FEWER, 0.0, in_force=True)  # but others, who might go on, were set aside
            self._fewer_verdicts.leave(now_s, before)
        else:
            now.meter.begin_window(now_s)
            now.stay.disturb()

    def _judge_early(self, now_s: float, reading: Reading) -> None:
        """A clear case need not fill its window."""
        now, at_most = self._in_force, reading.measured + reading.doubt
        others = now.modes.others(now.home, at_most, in_force=True)
        if at_most < max(others.values(), default=0.0) * _CLEAR:
            now.note(now.home, reading)
            now.look_for_groups(now.home, reading)
            now.leave_for(now_s, now.modes.best_beside(now.home) or TURNS)

    def _judge_window(self, now_s: float, reading: Reading) -> None:
        now = self._in_force
        known, fresh = now.modes[now.home], now.stay.fresh
        first, before = not known.measured, known.worth
        changed = self._count(reading, first=first)
        found_now = self._fewer_verdicts.look_for(reading)
        other = now.modes.best_beside(now.home)
        due = fresh or changed or now.stay.left == 0 or not now.here
        if other and (due or (found_now and other == FEWER)) and self._is_better(other):
            if now.home != FEWER:
                now.leave_for(now_s, other)
            elif first:  # it may be slow, since memory has just been copied: the next window tells
                now.stay.disturb()
                now.stay.fresh = True
            else:
                self._fewer_verdicts.leave(now_s, None if fresh else before)
            return
        now.stay.before = None
        if not changed and (name := self._trial_verdicts.due()):
            now.begin_trial(now_s, name)
        elif now.home == FEWER and now.fewer_search.turn_is_over(now_s):
            self._fewer_verdicts.end_turn(now_s)

    def _count(self, reading: Reading, *, first: bool) -> bool:
        """A full window; whether the mode has changed."""
        now = self._in_force
        changed = now.stay.has_changed(reading)
        alone = first or now.stay.is_alone(changed)
        now.note(now.home, reading if alone else mean([reading, now.known[now.home]]))
        if changed:
            now.modes.forget([name for name in now.modes if name != now.home])
        now.stay.count(reading, alone=alone, changed=changed)
        self._doubt_turns()
        now.look_for_groups(now.home, reading)
        return changed

    def _is_better(self, other: str) -> bool:
        """Clearly, and not as long as its trials have not decided."""
        now = self._in_force
        undecided = now.here and now.modes[other].readings
        return not undecided and now.modes.worth_of(other) > now.here * MARGIN

    def _doubt_turns(self) -> None:
        """Where sharing has come to yield less than turns have by definition, and still does, it may be slow itself."""
        now = self._in_force
        turns = now.modes.get(TURNS)
        if not turns or turns.measured or now.home in AS_MEASURED or now.stay.left:
            return
        if now.stay.is_low(max(now.here, turns.worth) * MARGIN < 1):
            turns.worth = 1.0
