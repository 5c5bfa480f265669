"""Finds groups (`scheduling.groups`) anew as rates change, and keeps what was measured of those that were found."""

from __future__ import annotations

import math
from collections.abc import Mapping

from gpushare.scheduling.groups import Groups, best_groups

_ALIKE = 0.1  # of a rate: what windows of the same jobs differ by
_SAME = 0.2  # rates that differ by a part like this may be of the same jobs in the same phase

Rates = Mapping[int, float]  # of each account, in solo seconds per second, all running side by side


class GroupSearch:
    """`groups`: the ones found last; none before that."""

    def __init__(self) -> None:
        self.groups: Groups = ()
        self._at: Rates = {}  # the rates that these were found by
        self._measured: dict[
            Groups, tuple[float, Rates]
        ] = {}  # efficiency, and the rates that they were found by
        self._in_vain: Rates = {}  # of the last search that found none

    def find(self, rates: Rates, least: float) -> float | None:
        """What is believed of the efficiency of others than `groups`, whose place they take.

        None, and all stays as it was, if there are none or they are not believed to be better than `least`. Of groups
        that were measured while the jobs went on as they do now no more is believed than that.
        """
        if alike(rates, self._in_vain):
            return None
        found = best_groups(rates)
        self._in_vain = {} if found else rates
        if not found or found.groups == self.groups:
            return None
        measured, at = self._measured.get(found.groups, (math.inf, {}))
        believed = min(found.efficiency, measured) if alike(rates, at, _SAME) else found.efficiency
        if believed <= least:
            return None
        self.groups, self._at = found.groups, rates
        return believed

    def note(self, efficiency: float) -> None:
        """That was measured of `groups`."""
        self._measured[self.groups] = efficiency, self._at


def alike(rates: Rates, others: Rates, off: float = _ALIKE) -> bool:
    """Whether these are the same accounts', and so close that they may be of the same.

    :param off: by what part of the larger one two rates may differ.
    """
    return rates.keys() == others.keys() and all(
        abs(rate - others[account]) <= off * max(rate, others[account]) for account, rate in rates.items()
    )
