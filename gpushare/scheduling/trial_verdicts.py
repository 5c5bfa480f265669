"""Which mode is tried, for how long, and what comes of it."""

from __future__ import annotations

from gpushare.scheduling.fewer_verdicts import FewerVerdicts
from gpushare.scheduling.in_force import CLOSE, InForce
from gpushare.scheduling.meter import Reading, mean
from gpushare.scheduling.modes import MARGIN
from gpushare.scheduling.snapshot import FEWER, GROUPS, TURNS

_WORTH = 1.25  # where sharing has this efficiency taking turns is not tried: solo times are not wrong by more
_TRIALS_OF_CLOSE_ONES, _TRIALS_OF_MUCH_BETTER_ONES = 3, 2


class TrialVerdicts:
    """Of a mode that is measured to see whether it is better than the one in force."""

    def __init__(self, in_force: InForce, fewer: FewerVerdicts) -> None:
        self._in_force = in_force
        self._fewer_verdicts = fewer

    def due(self) -> str | None:
        """The mode whose trial is due and can be afforded; None if there is none."""
        now = self._in_force
        due = [name for name in now.modes if self._is_due(name)]
        if not due or not now.here or now.home == FEWER:
            return None
        name = max(due, key=now.modes.worth_of)
        if GROUPS in now.modes:  # of three the one that seems worst would not be looked at again
            name = min(due, key=lambda one: (now.modes[one].trials, -now.modes.worth_of(one)))
        return name if now.affords_trial(name) else None

    def _is_due(self, name: str) -> bool:
        now = self._in_force
        if name in (now.home, FEWER) or (name == TURNS and now.here >= _WORTH):
            return False
        return now.stay.left == 0 or not now.modes[name].tried

    def judge(self, now_s: float, reading: Reading | None) -> None:
        """This is what the mode that is on trial has done so far."""
        now, name = self._in_force, self._in_force.mode or self._in_force.home
        over = not now.account.affords(now.meter.lost_s(now_s, now.done_here))
        clear = reading and (reading.full or reading.measured + reading.doubt < now.here * CLOSE)
        if reading and reading.measured <= 0:  # all stood still, which no mode makes jobs do
            self._end(now_s, name, better=False, for_long=False)
        elif reading and over and reading.stood and not clear and not now.modes[name].put_off:
            now.modes[name].put_off = True  # once: in each window some may stand still
            self._end(now_s, name, better=False, for_long=False)
        elif reading and (over or clear):
            self._conclude(now_s, name, reading)
        elif over:
            now.modes[name].readings.clear()
            self._end(now_s, name, better=False)

    def _conclude(self, now_s: float, name: str, reading: Reading) -> None:
        """In a short window a mode that is close to the one in force may be the better one: it is tried again soon."""
        now, here = self._in_force, self._in_force.here
        tried = now.modes[name]
        tried.readings.append(reading)
        # Or is it the machine that has become faster? (What groups are worth is not only their efficiency.)
        much_better = reading.measured * CLOSE > here and name != GROUPS
        if much_better and len(tried.readings) < _TRIALS_OF_MUCH_BETTER_ONES:
            self._end(now_s, name, better=False, for_long=False)
            tried.tried = False
            return
        found = mean(tried.readings)
        now.note(name, found)
        tried.put_off = False
        now.look_for_groups(name, found)
        close = CLOSE < tried.worth / here < 1 / CLOSE
        again = close and len(tried.readings) < _TRIALS_OF_CLOSE_ONES
        better = tried.worth > here * MARGIN and not again
        self._end(now_s, name, better=better, for_long=not again)
        if again:
            tried.tried = False
        else:
            tried.readings.clear()

    def _end(self, now_s: float, name: str, *, better: bool, for_long: bool = True) -> None:
        now = self._in_force
        now.stop_trial(now_s)
        if for_long and (better or now.home != FEWER):
            now.stay.lengthen()
        now.stay.before = None
        if now.home != FEWER:
            now.take(now_s, name if better else now.home)
        elif better:
            now.fewer_search.give_up()
            now.take(now_s, name)
        else:
            self._fewer_verdicts.stay_or_not(now_s)
