"""Budgets worth knowing: where nothing waits, where all can run; and throughput over the budget."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from gpushare.jobs import FIFO
from gpushare.scheduling.order import NATIVE
from gpushare.simulation.contention import Contention
from gpushare.simulation.engine import PAGE_BYTES, Engine
from gpushare.simulation.job import SimulatedJob
from gpushare.simulation.outcome import OK
from gpushare.simulation.rules import PLAIN, Rules
from gpushare.simulation.runs import Settings, engine_for, simulate

_SEARCH_ITERATIONS = 8  # of the job that has the fewest
_RARE = 100  # a kind of iterations that comes less often is not waited for
_HEADROOM_PAGES = 2  # that the governor sets aside at first (books.cpp)


@dataclass(frozen=True)
class Budgets:
    """In bytes; None where no budget does it.

    `nothing_waits`: the smallest at which no job ever waits. `all_run`: the smallest at which every job
    comes to iterate before another has ended.
    """

    nothing_waits: int | None
    all_run: int | None


def smallest(holds: Callable[[int], bool], low: int, high: int, *, from_top: bool = False) -> int | None:
    """The smallest n in [low, high] with `holds(n)`, if it holds from there on; None if not even for `high`.

    :param from_top: it is expected near `high`, not near `low`; few calls are made where that is so.
    """
    if not holds(high):
        return None
    low, high = _narrow_from_top(holds, low, high) if from_top else _narrow_from_bottom(holds, low, high)
    while low < high:
        middle = (low + high) // 2
        if holds(middle):
            high = middle
        else:
            low = middle + 1
    return high


def _narrow_from_top(holds: Callable[[int], bool], low: int, high: int) -> tuple[int, int]:
    """As `holds(high)`: bounds of the smallest one, in steps that double."""
    step = 1
    while high - step > low:
        if not holds(high - step):
            return high - step + 1, high
        high, step = high - step, 2 * step
    return low, high


def _narrow_from_bottom(holds: Callable[[int], bool], low: int, high: int) -> tuple[int, int]:
    step = 0
    while low + step < high:
        if holds(low + step):
            return low, low + step
        low, step = low + step + 1, 2 * step + 1
    return low, high


def budgets(
    jobs: Sequence[SimulatedJob],
    *,
    policy: str,
    contention: Contention,
    page_bytes: int = PAGE_BYTES,
    split_bytes: int | None = None,
) -> Budgets:
    """Search both, by runs of a few iterations of each job. Jobs that arrive later are taken to be there at once.

    A run ends as soon as the answer is known.
    """
    few = [replace(job, iterations=_few(job, jobs), arrival_s=0.0) for job in jobs]

    def holds(question: Callable[[Engine], bool], pages: int) -> bool:
        rules = Rules(
            split_bytes=split_bytes
        )  # first in first out: who goes first changes neither answer much
        settings = Settings(contention=contention, page_bytes=page_bytes, record=False, rules=rules)
        engine = engine_for(few, policy, pages * page_bytes, **settings)
        engine.governor.order(NATIVE[FIFO], 0)  # a quantum may be longer than these few iterations
        with engine.governor:
            return question(engine)

    low = max(1, max(_pages(job.peak_bytes, page_bytes) for job in jobs))
    high = sum(_pages(job.peak_bytes, page_bytes) for job in jobs) + _HEADROOM_PAGES
    none_waits = smallest(lambda n: holds(_nothing_waits, n), low, high, from_top=True)
    all_run = smallest(lambda n: holds(_all_run, n), low, high)
    return Budgets(
        None if none_waits is None else none_waits * page_bytes,
        None if all_run is None else all_run * page_bytes,
    )


def _nothing_waits(engine: Engine) -> bool:
    while engine.running and not engine.has_waited and not engine.has_failed:
        engine.advance()
    return not engine.has_waited and not engine.has_failed


def _all_run(engine: Engine) -> bool:
    while engine.running and engine.all_have_run is not False and not engine.has_failed:
        engine.advance()
    return engine.all_have_run is True and not engine.has_failed


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
    rules: Rules = PLAIN,
    tell: Callable[[str], None] = lambda what: None,
) -> dict[str, list[Swept]]:
    """Throughput of each policy at each budget.

    :param tell: gets what comes next.
    """

    def at(policy: str, i: int, budget_bytes: int) -> Swept:
        tell(f"sweeping the budget under {policy}: {i + 1} of {len(budgets_bytes)}")
        outcome = simulate(
            jobs,
            policy=policy,
            budget_bytes=budget_bytes,
            contention=contention,
            page_bytes=page_bytes,
            record=False,
            rules=rules,
        )
        return Swept(outcome.stp, sum(job.status == OK for job in outcome.jobs))

    return {policy: [at(policy, i, b) for i, b in enumerate(budgets_bytes)] for policy in policies}


def sweep_budgets(
    jobs: Sequence[SimulatedJob], points: int, page_bytes: int = PAGE_BYTES, least_bytes: int = 0
) -> list[int]:
    """Budgets from the largest peak to the sum of the peaks and the headroom, evenly spaced, in bytes; none below
    `least_bytes`.
    """
    low = max(_pages(least_bytes, page_bytes), *(_pages(job.peak_bytes, page_bytes) for job in jobs))
    high = max(low, sum(_pages(job.peak_bytes, page_bytes) for job in jobs) + _HEADROOM_PAGES)
    steps = max(1, points - 1)
    return sorted({(low + (high - low) * i // steps) * page_bytes for i in range(steps + 1)})


def _few(job: SimulatedJob, jobs: Sequence[SimulatedJob]) -> int:
    """The same part of what each job does: eight of the fewest, and until each kind of iterations has come."""
    parts = [_SEARCH_ITERATIONS / min(j.iterations for j in jobs)]
    parts += [j.until_all_kinds(_RARE) / j.iterations for j in jobs]
    return max(1, round(job.iterations * min(1.0, max(parts))))


def _pages(count: int, page_bytes: int) -> int:
    return -(-count // page_bytes)
