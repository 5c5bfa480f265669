"""When fewer jobs are there at once, when others come in, and when all come back (`scheduling.fewer`)."""

from __future__ import annotations

from gpushare.scheduling.in_force import InForce
from gpushare.scheduling.meter import Reading
from gpushare.scheduling.modes import AS_MEASURED, MARGIN, Mode, Modes
from gpushare.scheduling.snapshot import FEWER, TURNS

_WINDOWS_BEFORE = 3  # of the mode in force; the first one alone may be slow
_IN_DOUBT, _MOST_DOUBT = 1.25, 32  # by which sharing may become faster in a turn without measuring it; turns


class FewerVerdicts:
    """Of the mode FEWER, in force or not."""

    def __init__(self, in_force: InForce) -> None:
        self._in_force = in_force

    def look_for(self, reading: Reading) -> bool:
        """By what the mode in force has come to do, its last window alone too; whether it was found now.

        Turns have 1 by definition: nothing is to be waited for.
        """
        now = self._in_force
        known = now.modes.get(FEWER)
        too_soon = now.home not in AS_MEASURED and now.stay.windows < _WINDOWS_BEFORE
        if too_soon or (known and known.measured):
            return False
        most = max(now.here, reading.measured)
        worth = self._believed(now.modes, most) if len(reading.rates) > 2 else None
        if (
            worth is None
            or worth <= most * MARGIN
            or not now.fewer_search.is_worth_copying(now.account.elapsed_s)
        ):
            return False
        now.modes[FEWER] = Mode(worth)
        return known is None

    def stays(self, before: Modes) -> bool:
        """Of other jobs than before, whether it is still better to have fewer there at once: of the other modes no more
        is believed than before, so that nobody comes back only to leave again."""
        modes = self._in_force.modes.at_most(before)
        worth = self._believed(modes)
        if worth is None or worth <= modes.worth_of(max(modes, key=modes.worth_of)) * MARGIN:
            return False
        self._in_force.modes = modes
        modes[FEWER] = Mode(worth)
        return True

    def stay_or_not(self, now_s: float) -> None:
        """Fewer jobs at once, if that is still believed to be better: others, or another number of them."""
        now = self._in_force
        known = now.modes.pop(FEWER)
        worth, other = self._believed(now.modes), max(now.modes, key=now.modes.worth_of)
        if worth is None or (not known.measured and worth <= now.modes.worth_of(other) * MARGIN):
            now.fewer_search.give_up()
            now.take(now_s, other)
            return
        now.modes[FEWER] = known if known.measured else Mode(worth)
        now.take(now_s, FEWER)

    def _believed(self, modes: Modes, here: float = 0.0) -> float | None:
        """:param here: what the mode in force may be worth, if that is more than is believed of it."""
        sharing = modes.best_sharing
        worth = modes.worth_of(sharing) if sharing else 0.0
        return self._in_force.fewer_search.believed(
            sharing, max(worth, here if sharing == self._in_force.home else 0.0)
        )

    def end_turn(self, now_s: float) -> None:
        """Others come in; or all do, to try whether sharing has come to be better."""
        stay = self._in_force.stay
        stay.turns += 1
        if sharing := self._in_doubt():
            stay.turns = 0
            self._in_force.begin_trial(now_s, sharing)
        else:
            self.stay_or_not(now_s)

    def _in_doubt(self) -> str | None:
        """The way of sharing that may have become better than fewer jobs at once, if to try it can be afforded."""
        now = self._in_force
        name = now.modes.best_sharing
        worth = now.modes.worth_of(name) if name else 0.0
        if name is None or worth * _IN_DOUBT ** min(now.stay.turns, _MOST_DOUBT) <= now.here:
            return None
        return name if now.affords_trial(name, now.fewer_search.moving_s) else None

    def leave(self, now_s: float, before: float | None) -> None:
        """All come back.

        :param before: what it was known to be worth up to this window. It may only have stalled: as much is believed
            of it once more.
        """
        now = self._in_force
        other = now.modes.best_beside(FEWER) or TURNS
        now.fewer_search.give_up()
        now.modes.forget([other])  # the machine may have slowed down, which nothing has told of the others
        now.leave_for(now_s, other)
        if before is not None:
            now.modes[FEWER] = Mode(before)
