"""How much slower jobs compute beside each other.

Each effect is a plain factor on the pace of a job that computes. Beside each other job it takes longer by what the
pair says; what it feels of several adds up, as turns at one resource do. For some of that it waits (the GIL) and wants
no core, for the rest (memory bandwidth, caches) it does. The cores are shared out evenly once more of them are
wanted than there are. Not modelled: that what a job takes and feels changes within an iteration, and what a thread
that wakes up costs.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from gpushare.profiles import Profile

Pair = tuple[int, int]  # indices of a job, and of one beside it


@dataclass(frozen=True)
class Contention:
    """`factors[i, j]`: how many times longer job i takes while j computes too; `factor` is that of the other pairs.
    1: it does not feel it. `waits[i, j]`: what job i waits for j besides, in seconds of a second of its solo time."""

    cores: float
    factor: float = 1.0
    factors: Mapping[Pair, float] = field(default_factory=dict)
    waits: Mapping[Pair, float] = field(default_factory=dict)

    def pace(self, index: int, running: Sequence[int], threads: Sequence[float]) -> float:
        """Seconds of solo work that job `index` does in a second while `running` (it among them) compute."""
        wanted = sum(threads[i] / (1 + self._waits(i, running)) for i in running)
        longer = sum(self.factors.get((index, other), self.factor) - 1 for other in running if other != index)
        return min(1.0, self.cores / wanted) / (1 + longer + self._waits(index, running))

    def _waits(self, index: int, running: Sequence[int]) -> float:
        return sum(self.waits.get((index, other), 0.0) for other in running if other != index)


@dataclass(frozen=True)
class Felt:
    """What a job feels of another one, in seconds of a second of its solo time: waiting for the GIL, computing longer
    for want of memory bandwidth, and the rest, which may be less than 0 (see `rest_of`)."""

    gil: float
    bandwidth: float
    rest: float = 0.0

    @property
    def longer(self) -> float:
        """What it computes longer; for the GIL it waits."""
        return max(0.0, self.bandwidth + self.rest)

    @property
    def factor(self) -> float:
        """How many times longer it takes."""
        return 1 + self.gil + self.longer


def forecast(job: Profile, beside: Profile) -> Felt | None:
    """What `job` will feel `beside` another one, by what both were measured to take and to feel.

    Of the GIL: a job that holds it for a share g of its time and wants it while another one holds it for a share h
    waits g h (mean value analysis of two customers at one server, exact for turns of random length that are equally
    long on average). Of memory bandwidth: its sensitivity times the other's pressure (Bubble-Up).

    None if neither is known of both.
    """
    gil = bandwidth = None
    if job.gil_share is not None and beside.gil_share is not None:
        gil = job.gil_share * beside.gil_share
    if job.sensitivity is not None and beside.pressure is not None:
        bandwidth = job.sensitivity * beside.pressure
    return None if gil is None and bandwidth is None else Felt(gil or 0.0, bandwidth or 0.0)


def rest_of(factor: float, felt: Sequence[Felt]) -> float:
    """What a learned factor of a pair is above what both jobs' profiles foretold: caches, waking up, and all else that
    jobs alone don't show. A machine has much of it in common between pairs, so others are forecast with it."""
    return factor - statistics.mean(f.factor for f in felt)
