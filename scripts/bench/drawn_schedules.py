"""What the schedules of `schedules.py` are drawn from: jobs, budgets and orders, each told by its seed."""

import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache

from simulated_sets import PAGE, of_pages

from gpushare.jobs import FIFO, ORDERS
from gpushare.scheduling.order import QUANTUM_S
from gpushare.simulation import Contention, SimulatedJob
from gpushare.simulation.job import Variation

RERANKED = "reranked"  # ranks that change at random
KINDS = ((1.0, 0.3), (1.0, 1.0, 1.0, 0.4), (0.2, 0.6, 1.0))


def vary(seed: int, wrong: bool, kinds: tuple[float, ...]) -> Callable[[int], Variation]:
    @cache  # a seed costs more than all that is drawn from it
    def varied(iteration: int) -> Variation:
        rng = random.Random(seed * 1000 + iteration)
        over = wrong and rng.random() < 0.05
        kind = kinds[iteration % len(kinds)] if rng.random() < 0.9 else rng.choice(kinds)
        return Variation(held=kind * (rng.uniform(1, 1.1) if over else 1.0), time=rng.uniform(0.3, 3))

    return varied


def finer(held: list[int], times: int) -> list[int]:
    """The same curve with so many steps for each."""
    ends = [*held[1:], held[-1]]
    return [a + (b - a) * n // times for a, b in zip(held, ends, strict=True) for n in range(times)]


def job(rng: random.Random, i: int, iterations: int, wrong: bool, measured: float) -> SimulatedJob:
    rises = [rng.randint(1, 40) for _ in range(rng.randint(1, 8))]
    residue = rng.randint(0, 6)
    up = [residue + sum(rises[: n + 1]) for n in range(len(rises))]
    held = up + ([up[-1]] * len(up) if rng.random() < 0.3 else up[-2::-1])
    step_s, kinds = rng.choice((0.01, 0.05, 0.2)), (1.0,)
    if rng.random() < 0.33:
        held, kinds = finer(held, 2 + 30 // len(held)), rng.choice(KINDS)
        step_s /= 10
    count = rng.randint(1, iterations)
    made = of_pages(
        f"job {i}",
        held,
        residue,
        step_s,
        iterations=count,
        arrival_s=rng.choice((0.0, 0.0, rng.uniform(0, 3))),
        vary=vary(rng.randrange(10**9), wrong, kinds),
    )
    # What is measured first is of one kind, so that the claims of all would be wrong.
    has_profile = rng.random() >= measured or (len(kinds) > 1 and not wrong)
    fails_at = (rng.randrange(count), rng.randint(1, len(held))) if rng.random() < 1 / 6 else None
    return replace(made, priority=rng.randint(-1, 1), has_profile=has_profile, fails_at=fails_at)


@dataclass(frozen=True)
class Drawn:
    """A schedule. `least` is what all jobs need at once, `most` all that they could hold. The budget changes at
    `changes`, to no less than `lowest`."""

    jobs: list[SimulatedJob]
    least: int
    most: int
    budget: int
    contention: Contention
    order: str
    quantum_s: float
    changes: list[float]
    lowest: int


def draw(rng: random.Random, seed: int, wrong: bool) -> Drawn:
    measured = rng.choice((0.0, 0.0, 0.4))
    jobs = [job(rng, i, 12, wrong, measured) for i in range(rng.randint(2, 8 if wrong else 5))]
    least = sum(j.residue_bytes for j in jobs) + max(j.peak_bytes - j.residue_bytes for j in jobs)
    most = sum(j.peak_bytes for j in jobs)
    plain = seed % 3 == 0
    return Drawn(
        jobs,
        least,
        most,
        budget=least + 4 * PAGE + round(rng.random() ** 2 * (most - least) / PAGE) * PAGE,
        contention=Contention(4, rng.choice((1.05, 1.05, 2.5))),  # with the last, sharing loses
        order=FIFO if plain else rng.choice((*ORDERS, RERANKED)),
        quantum_s=0.0 if plain else rng.choice((0.0, QUANTUM_S)),
        changes=sorted(rng.uniform(0, 4) for _ in range(rng.choice((0, 3)))),
        lowest=rng.choice((least, least // 2)),
    )
