"""How soon all is done, if as much is left of each job: what modes are compared by.

Solo seconds per second (STP) say how much is done now, but not for whom. A mode in which one job runs as if it were
alone and the other one hardly does no more than put the other one off: it will run alone in the end. On equal terms a
mode is better in which both advance.
"""

from __future__ import annotations

from collections.abc import Sequence

_NOISE = 1.05  # that a measurement is off by at most, as a rule


def efficiency(rates: Sequence[float]) -> float:
    """The time for one job after the other, over the time until all are done at these rates; 1 where nothing is gained.

    The jobs have the same solo time left. When the first of them has ended the rest end as soon as they can: none is
    faster than alone, and what they do together lies on the line from what all do now to the 1 of a job alone. Even
    rates give their sum; the less even they are, the closer to 1 is what comes out. More of a job is never worse.

    :param rates: of each job, in solo seconds per second; 1 at most, but for noise.
    """
    total, jobs = sum(rates), len(rates)
    if total <= 0 or jobs < 2:
        return total
    fastest, slowest = max(rates), min(rates)
    left = jobs - total / fastest
    together = 1 + (total - 1) * (jobs - 2) / (jobs - 1)
    rest = max(left / together, 1 - slowest / fastest)
    return jobs / (1 / fastest + rest)


def doubt(rates: Sequence[float], off: Sequence[float]) -> float:
    """How far the efficiency may be off where each rate may be off by so much."""
    found = efficiency(rates)
    most = efficiency([rate + by for rate, by in zip(rates, off, strict=True)])
    least = efficiency([max(0.0, rate - by) for rate, by in zip(rates, off, strict=True)])
    return max(most - found, found - least)


def serial_share(forecast: float, measured: float) -> float:
    """The share of the work that is done as if one job ran after the other, where all else is as forecast; 0 to 1.

    As Amdahl has it: that share bounds what any number of jobs can gain. Curves leave contention out, so this is how
    much of it there is at least: what windows of the same jobs differ by is not put down to it.
    """
    if forecast <= 1 or measured <= 0:
        return 0.0
    return min(1.0, max(0.0, (1 / measured / _NOISE - 1 / forecast) / (1 - 1 / forecast)))


def slowed_down(forecast: float, serial: float) -> float:
    """What is left of the efficiency that is forecast without contention, where this share of the work is serial."""
    return 1 / (serial + (1 - serial) / forecast) if forecast > 0 else 0.0
