"""Budgets worth knowing: where nothing waits, where all can run; and throughput over the budget."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from gpushare.simulation.contention import Contention
from gpushare.simulation.engine import PAGE_BYTES, simulate
from gpushare.simulation.job import SimulatedJob
from gpushare.simulation.outcome import OK, Outcome

_SEARCH_ITERATIONS = 8  # of the job that has the fewest
_HEADROOM_PAGES = 2  # that the governor sets aside at first (governor.cpp)


@dataclass(frozen=True)
class Budgets:
    """In bytes; None where no budget does it.

    `nothing_waits`: the smallest at which no job ever waits. `all_run`: the smallest at which every job
    comes to iterate before another has ended.
    """

    nothing_waits: int | None
    all_run: int | None


def smallest(holds: Callable[[int], bool], low: int, high: int) -> int | None:
    """The smallest n in [low, high] with `holds(n)`, if it holds from there on; None if not even for `high`."""
    if not holds(high):
        return None
    while low < high:
        middle = (low + high) // 2
        if holds(middle):
            high = middle
        else:
            low = middle + 1
    return high


def budgets(
    jobs: Sequence[SimulatedJob], *, policy: str, contention: Contention, page_bytes: int = PAGE_BYTES
) -> Budgets:
    """Search both, by runs of a few iterations of each job. Jobs that arrive later are taken to be there at once."""
    few = [replace(job, iterations=_few(job, jobs), arrival_s=0.0) for job in jobs]

    def run(pages: int) -> Outcome:
        return simulate(
            few,
            policy=policy,
            budget_bytes=pages * page_bytes,
            contention=contention,
            page_bytes=page_bytes,
            record=False,
        )

    low = max(1, max(_pages(job.peak_bytes, page_bytes) for job in jobs))
    high = sum(_pages(job.peak_bytes, page_bytes) for job in jobs) + _HEADROOM_PAGES
    none_waits = smallest(lambda n: run(n).nothing_waits, low, high)
    all_run = smallest(lambda n: run(n).all_run, low, high)
    return Budgets(
        None if none_waits is None else none_waits * page_bytes,
        None if all_run is None else all_run * page_bytes,
    )


@dataclass(frozen=True)
class Swept:
    """One policy at one budget: its STP, and how many jobs did all their iterations."""

    stp: float
    ended: int


def sweep(
    jobs: Sequence[SimulatedJob],
    *,
    policies: Sequence[str],
    budgets_bytes: Sequence[int],
    contention: Contention,
    page_bytes: int = PAGE_BYTES,
) -> dict[str, list[Swept]]:
    """Throughput of each policy at each budget."""

    def at(policy: str, budget_bytes: int) -> Swept:
        outcome = simulate(
            jobs,
            policy=policy,
            budget_bytes=budget_bytes,
            contention=contention,
            page_bytes=page_bytes,
            record=False,
        )
        return Swept(outcome.stp, sum(job.status == OK for job in outcome.jobs))

    return {policy: [at(policy, b) for b in budgets_bytes] for policy in policies}


def sweep_budgets(jobs: Sequence[SimulatedJob], points: int, page_bytes: int = PAGE_BYTES) -> list[int]:
    """Budgets from the largest peak to the sum of the peaks and the headroom, evenly spaced, in bytes."""
    low = max(_pages(job.peak_bytes, page_bytes) for job in jobs)
    high = sum(_pages(job.peak_bytes, page_bytes) for job in jobs) + _HEADROOM_PAGES
    steps = max(1, points - 1)
    return sorted({(low + (high - low) * i // steps) * page_bytes for i in range(steps + 1)})


def _few(job: SimulatedJob, jobs: Sequence[SimulatedJob]) -> int:
    share = _SEARCH_ITERATIONS / max(1, min(j.iterations for j in jobs))
    return max(1, round(job.iterations * min(1.0, share)))


def _pages(count: int, page_bytes: int) -> int:
    return -(-count // page_bytes)
