"""How much slower jobs compute beside each other.

Two effects, each a plain factor on the pace of a job that computes: the cores are shared out evenly once more of
them are wanted than there are, and beside each other job that computes a job takes longer by what the pair says
(memory bandwidth, caches, the GIL); what it feels of several adds up, as turns at one resource do. Not modelled: that
what a job takes and feels changes within an iteration, and what a thread that wakes up costs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from gpushare.profiles import Profile

Pair = tuple[int, int]  # indices of a job, and of one beside it


@dataclass(frozen=True)
class Contention:
    """`factors[i, j]`: how many times longer job i takes while j computes too; `factor` is that of the other pairs.
    1: it does not feel it."""

    cores: float
    factor: float = 1.0
    factors: Mapping[Pair, float] = field(default_factory=dict)

    def pace(self, index: int, running: Sequence[int], threads: Sequence[float]) -> float:
        """Seconds of solo work that job `index` does in a second while `running` (it among them) compute."""
        wanted = sum(threads[i] for i in running)
        longer = sum(self.factors.get((index, other), self.factor) - 1 for other in running if other != index)
        return min(1.0, self.cores / wanted) / (1 + longer)


def forecast_factor(job: Profile, beside: Profile) -> float | None:
    """How many times longer `job` takes `beside` another one, by what both were measured to take and to feel.

    Of the GIL: a job that holds it for a share g of its time and wants it while another one holds it for a share h
    waits its turn, which makes its time 1 + g h (mean value analysis of two customers at one server, exact for turns
    of random length). Of memory bandwidth: its sensitivity times the other's pressure (Bubble-Up).

    None if neither is known of both.
    """
    longer = []
    if job.gil_share is not None and beside.gil_share is not None:
        longer.append(job.gil_share * beside.gil_share)
    if job.sensitivity is not None and beside.pressure is not None:
        longer.append(job.sensitivity * beside.pressure)
    return 1 + sum(longer) if longer else None
