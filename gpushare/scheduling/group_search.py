"""Finds groups (`scheduling.groups`) anew as rates change, and keeps what was measured of those that were found."""

from __future__ import annotations

import math

from gpushare.scheduling.groups import Groups, Rates, best_groups, is_fair
from gpushare.scheduling.meter import Reading

_ALIKE = 0.1  # of a rate: what windows of the same jobs differ by
_SAME = 0.2  # rates that differ by a part like this may be of the same jobs in the same phase


class GroupSearch:
    """`groups`: the ones found last; none before that."""

    def __init__(self) -> None:
        self.groups: Groups = ()
        self._at: Rates = {}  # the rates that these were found by
        self._off: Rates = {}  # how far these may be off
        self._fair: float | None = None  # efficiency, when these were first measured to put nobody off
        self._measured: dict[Groups, tuple[float, Rates]] = {}  # worth, and the rates that they were found by
        self._in_vain: Rates = {}  # of the last search that found none

    def find(self, reading: Reading, least: float) -> float | None:
        """What is believed of the efficiency of others than `groups`, whose place they take.

        None, and all stays as it was, if there are none or they are not believed to be better than `least`. Of groups
        that were measured while the jobs went on as they do now no more is believed than that.

        :param reading: of all jobs side by side.
        """
        rates = reading.rates
        if alike(rates, self._in_vain):
            return None
        found = best_groups(rates, reading.off)
        by_a_closer_look = found or best_groups(rates, dict.fromkeys(rates, 0.0))
        self._in_vain = {} if by_a_closer_look else rates
        if not found or found.groups == self.groups:
            return None
        measured, at = self._measured.get(found.groups, (math.inf, {}))
        believed = min(found.efficiency, measured) if alike(rates, at, _SAME) else found.efficiency
        if believed <= least:
            return None
        self.groups, self._at, self._off, self._fair = found.groups, rates, reading.off, None
        return believed

    def forget(self) -> None:
        """There are no groups; what was measured of these still counts."""
        self.groups = ()

    def worth(self, reading: Reading) -> float:
        """Of `groups`, as this was measured of them: their efficiency, or nothing if they put some jobs off."""
        slower = min(1.0, reading.measured / self._fair) if self._fair else 1.0
        if slower <= 0:
            return 0.0
        # What makes all jobs slower puts none off.
        rates, off = ({a: x / slower for a, x in of.items()} for of in (reading.rates, reading.off))
        fair = is_fair(rates, off, (self._at, self._off))
        worth = reading.measured if fair else 0.0
        self._fair = self._fair or (reading.measured if fair else None)
        self._measured[self.groups] = worth, self._at
        return worth


def alike(rates: Rates, others: Rates, off: float = _ALIKE) -> bool:
    """Whether these are the same accounts', and so close that they may be of the same.

    :param off: by what part of the larger one two rates may differ.
    """
    return rates.keys() == others.keys() and all(
        abs(rate - others[account]) <= off * max(rate, others[account]) for account, rate in rates.items()
    )
