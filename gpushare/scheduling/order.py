"""Who goes first of the jobs that wait at their doors. Independent of how memory overlaps (the policy).

After Salus (section 4.2 and 5): first in first out; fair by the memory that iterations were granted, times the time
they held it; the shortest remaining time first; by priority. The last two are ranks, which are published ahead of
need. A job that is running is never stopped: it yields where its iteration ends, and its memory stays.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gpushare.jobs import FAIR, FIFO, PRIORITY, SRTF

# As the shim knows them (`gs_order`).
NATIVE = {FIFO: "fifo", FAIR: "fair", SRTF: "ranked", PRIORITY: "ranked"}
BY_RANK = tuple(order for order, native in NATIVE.items() if native == "ranked")
# That a job goes on for where jobs take turns. Its first iterations find cold caches and a core that has slept: with
# iterations of 6 ms the first took 1.6 times as long, and the 16th was the first at full speed.
QUANTUM_S = 0.5
_LAST = 2**62  # rank of a job whose remaining time nobody knows


@dataclass(frozen=True)
class Claimant:
    """What the order of a job depends on.

    `total_iterations` is how many it did when it last ran to its end; None if it never did. `solo_s` is the time of
    one alone, None before its profile.
    """

    account: int
    priority: int
    total_iterations: int | None
    iterations: float
    solo_s: float | None

    @property
    def remaining_s(self) -> float | None:
        """Solo time of what it has still to do; None if that is not known.

        A job that has gone past its last count does more than it did then, and nobody knows how much.
        """
        if (
            self.total_iterations is None
            or self.solo_s is None
            or self.iterations > self.total_iterations + 1
        ):
            return None
        return max(0.0, self.total_iterations - self.iterations) * self.solo_s


def rank_in_queue(order: str, priority: int, solo_s: float | None) -> int:
    """Of a job that is not begun yet: the lowest goes first.

    :param solo_s: of the whole job alone; None if that is not known.
    """
    return ranks(order, [Claimant(0, priority, 1, 0, solo_s)]).get(0, 0)


def ranks(order: str, claimants: Sequence[Claimant]) -> Mapping[int, int]:
    """The rank of each account, the lowest first; empty where the order needs none."""
    if order == PRIORITY:
        return {c.account: -c.priority for c in claimants}
    if order == SRTF:
        return {c.account: _by_remaining(c) for c in claimants}
    return {}


def _by_remaining(claimant: Claimant) -> int:
    remaining_s = claimant.remaining_s
    return _LAST if remaining_s is None else round(remaining_s * 1e3)
