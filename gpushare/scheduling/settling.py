"""Jobs on their way out or back: until they are there, measuring says nothing of those that run."""

from __future__ import annotations

from collections.abc import Collection

SETTLING_S = 30.0  # at most: a job that computes all the time is never copied out, and one may never iterate


class Settling:
    """`took_s`: how long it last took until those that were told to leave, or to come back, had."""

    def __init__(self) -> None:
        self.took_s = 0.0
        self._since_s: float | None = None  # when they were told, until all is settled
        self._aside: frozenset[int] = frozenset()
        self._back: frozenset[int] = frozenset()  # told to come back together with these
        self._returning: set[int] = set()  # where nobody is set aside: who was not seen to be back yet
        self._moves = False

    def begin(self, aside: frozenset[int], now_s: float) -> None:
        """These are set aside from now on, and no others."""
        if self._moves and self._since_s is not None:
            self.took_s = max(self.took_s, now_s - self._since_s)
        self._back = self._aside - aside
        self._moves = bool(self._back or aside - self._aside)
        self._returning = set() if aside else self._returning | self._back
        self._since_s, self._aside = now_s, aside

    def is_over(self, now_s: float, away: Collection[int], all_run: bool) -> bool:
        """Whether all others than those set aside run, and these are away, or have had `SETTLING_S` to.

        :param away: whose memory is copied out. Where nobody is set aside that may be so for want of memory: only
            those are waited for who come back from having been.
        :param all_run: nobody is setting up in the room that was made, or is measured alone.
        """
        if self._since_s is None:
            return True
        waited_s = now_s - self._since_s
        if self._aside:
            there = self._aside == set(away)
            have_moved = self._aside.issubset(away) and self._back.isdisjoint(away)
        else:
            self._returning &= set(away)
            there = have_moved = not self._returning
        if self._moves and (have_moved or waited_s >= SETTLING_S):
            self._moves, self.took_s = False, waited_s
        if waited_s < SETTLING_S and not (there and (all_run or not self._aside)):
            return False
        self._since_s = None
        self._returning.clear()
        return True
