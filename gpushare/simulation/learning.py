"""The factor of a pair from a run: the one at which the simulated pair does as much work per second as the real one.

Beside the cores that are wanted (`contention`), everything that jobs do to each other is in it: caches, memory
bandwidth, the GIL, waking up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gpushare.scheduling.policies import POLICIES
from gpushare.simulation.contention import Contention
from gpushare.simulation.engine import Engine
from gpushare.simulation.job import SimulatedJob, iterations_for
from gpushare.simulation.rules import Rules

_ITERATIONS, _FASTER = 8, 600  # of the slower job, and about the most of the faster one
_OVERLAP = 1.2  # a pair that yields less without contention tells too little of it
_MOST, _HALVINGS = 16.0, 12
MOST_EVENTS = 12_000  # of a simulation, of which there are a dozen


def counts_for(iteration_s: Sequence[float]) -> list[int]:
    """Iterations of both jobs that are simulated: fewer of the slower one where the other is much faster."""
    ratio = max(iteration_s) / max(min(iteration_s), 1e-9)
    return iterations_for(iteration_s, max(2, min(_ITERATIONS, round(_FASTER / ratio))))


def factor_of(
    pair: Sequence[SimulatedJob],
    *,
    mode: str,
    measured: float,
    budget_bytes: int,
    cores: float,
    page_bytes: int,
    split_bytes: int | None = None,
) -> float | None:
    """None if the jobs hardly overlap at this budget.

    :param mode: the policy whose permits were in force while `measured` solo seconds per second were done.
    """
    counts = counts_for([job.mean_iteration_s for job in pair])
    jobs = [replace(job, iterations=n, arrival_s=0.0) for job, n in zip(pair, counts, strict=True)]

    def stp(factor: float) -> float:
        engine = Engine(
            jobs,
            policy=POLICIES[mode],
            mechanism=mode,
            budget_bytes=budget_bytes,
            contention=Contention(cores, factor),
            page_bytes=page_bytes,
            record=False,
            rules=Rules(split_bytes=split_bytes),
        )
        with engine.governor:
            engine.run()
            return sum(job.work_s for job in engine.outcomes()) / engine.window_s if engine.window_s else 0.0

    if stp(1.0) < _OVERLAP:
        return None
    low, high = 1.0, _MOST
    for _ in range(_HALVINGS):
        middle = (low * high) ** 0.5
        low, high = (middle, high) if stp(middle) > measured else (low, middle)
    return low
