"""How much slower jobs compute beside each other.

Two effects, each a plain factor on the pace of a job that computes: the cores are shared out evenly once more of
them are wanted than there are, and beside each other job that computes a job runs slower by the factor of the pair
(memory bandwidth, caches, the GIL). Not modelled: that the factor changes within an iteration, that jobs which
wait for the GIL slow each other in turns, and what a thread that wakes up costs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

Pair = frozenset[int]  # indices of two jobs


@dataclass(frozen=True)
class Contention:
    """`factor` is that of pairs that `factors` does not have; 1: they do not feel each other."""

    cores: float
    factor: float = 1.0
    factors: Mapping[Pair, float] = field(default_factory=dict)

    def pace(self, index: int, running: Sequence[int], threads: Sequence[float]) -> float:
        """Seconds of solo work that job `index` does in a second while `running` (it among them) compute."""
        wanted = sum(threads[i] for i in running)
        pace = min(1.0, self.cores / wanted)
        for other in running:
            if other != index:
                pace /= self.factors.get(frozenset((index, other)), self.factor)
        return pace
