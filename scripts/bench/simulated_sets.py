"""Random sets of jobs for the simulator: iterations that rise and fall, in which times wander."""

import math
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean, geometric_mean
from typing import Any

from gpushare.native.simulation import SimulatedGovernor
from gpushare.scheduling.leases import segment_bytes
from gpushare.scheduling.policies import POLICIES
from gpushare.simulation import Contention, Engine, SimulatedJob
from gpushare.simulation.job import Variation
from gpushare.simulation.planner import SegmentBytes

PAGE = 2 << 20
ENDLESS = 10**6
ITERATIONS = 20  # solo times of the mean job, that are looked at


@dataclass(frozen=True)
class Set:
    """`peaks`: of the largest job, that the budget has beside all residues. `spread`: of an iteration's time."""

    seed: int
    jobs: int
    peaks: float
    spread: float
    equal: bool


@dataclass(frozen=True)
class Figures:
    """Solo seconds of work per second; seconds that jobs waited in mid-iteration, of all together per second."""

    stp: float
    memory_waits: float


def sets(seeds: int) -> Iterator[Set]:
    """The same ones every time."""
    for jobs, peaks in ((2, 1.05), (2, 1.3), (4, 1.3), (4, 1.6), (6, 2.2)):
        for spread in (0.0, 0.3):
            for equal in (True, False):
                for seed in range(seeds):
                    yield Set(seed, jobs, peaks, spread, equal)


Vary = Callable[[int], Variation]
Told = Callable[[float], float]


def of_pages(
    name: str,
    held: Sequence[int],
    residue: int,
    step_s: float,
    *,
    iterations: int,
    arrival_s: float,
    vary: Vary,
) -> SimulatedJob:
    """A job whose iterations hold so many pages in each of their steps, which are equally long."""
    times = tuple(n * step_s for n in range(len(held)))
    return SimulatedJob(
        name=name,
        held_bytes=tuple(h * PAGE for h in held),
        time_s=times,
        iteration_s=times[-1] + step_s,
        residue_bytes=residue * PAGE,
        iterations=iterations,
        arrival_s=arrival_s,
        vary=vary,
    )


def _wandering(seed: int, spread: float) -> Vary:
    def vary(iteration: int) -> Variation:
        rng = random.Random(seed * 1000 + iteration)
        return Variation(held=1.0, time=rng.uniform(1 - spread, 1 + spread))

    return vary


def _job(shape: random.Random, wandering: int, spread: float, i: int) -> SimulatedJob:
    steps, level, up = shape.randint(60, 200), 0, []
    for _ in range(steps):
        level += shape.randint(0, 12)
        up.append(level)
    residue, downs = shape.randint(0, 80), int(steps * shape.choice((0.5, 1, 2)))
    down = [up[int((steps - 1) * (1 - k / downs))] for k in range(downs)]
    held = [h + residue + shape.randint(0, 12) for h in up + down]  # what is gone with the next allocation
    step_s = shape.choice((0.001, 0.002, 0.004))
    vary = _wandering(wandering, spread)
    return of_pages(f"job {i}", held, residue, step_s, iterations=ENDLESS, arrival_s=0.0, vary=vary)


def jobs_of(one: Set) -> list[SimulatedJob]:
    """Equal jobs have the same shape, and times of their own."""
    rng = random.Random(one.seed)
    found = []
    for i in range(one.jobs):
        shape = random.Random(one.seed + (0 if one.equal else 1000 * (i + 1)))
        found.append(_job(shape, rng.randrange(10**9), one.spread, i))
    return found


def budget_of(one: Set, jobs: list[SimulatedJob]) -> int:
    """In whole pages, with two of headroom and two to spare."""
    residues = sum(job.residue_bytes for job in jobs)
    largest = max(job.peak_bytes - job.residue_bytes for job in jobs)
    return residues + math.ceil(one.peaks * largest / PAGE) * PAGE + 4 * PAGE


def run(one: Set, policy: str, factor: float = 1.0, **rest: Any) -> Figures:
    """As `run_for`, for `ITERATIONS`."""
    (found,) = run_for(one, policy, factor, lengths=(ITERATIONS,), **rest)
    return found


def run_for(
    one: Set,
    policy: str,
    factor: float,
    *,
    lengths: Sequence[float],
    segments: SegmentBytes = segment_bytes,
    before: Callable[[Engine], Any] = lambda _: None,
    shape: Callable[[SimulatedJob], SimulatedJob] = lambda job: job,
    told: Told | None = None,
) -> list[Figures]:
    """What came of the set, with a core for each job; each feels the others by the factor.

    :param lengths: of the run, in solo times of the mean job, the shortest first; figures of each.
    :param before: called before every event.
    :param shape: what becomes of each job first.
    :param told: where in its iteration a job's profile says that a step is, by where it is; nothing wrong if None.
    """
    jobs = [shape(job) for job in jobs_of(one)]
    contention = Contention(float(one.jobs), factor)
    engine = Engine(
        jobs,
        policy=POLICIES[policy],
        mechanism="zico",
        budget_bytes=budget_of(one, jobs),
        contention=contention,
        record=False,
        segments=segments,
    )
    if told:
        _tell(engine.governor, told)
    mean_s = sum(job.iteration_s for job in jobs) / len(jobs)
    found = []
    with engine.governor as governor:
        for length in lengths:
            while engine.now_s < length * mean_s:
                before(engine)
                engine.advance()
            counted = [governor.job(account) for account in range(1, one.jobs + 1)]
            waited_s = sum(job.memory_wait_ns for job in counted) / 1e9
            found.append(Figures(engine.work_s / engine.now_s, waited_s / engine.now_s))
    return found


def _tell(governor: SimulatedGovernor, told: Told) -> None:
    """Profiles with the steps at other times than those at which they come."""
    begin = governor.job_begin

    def wrongly(held: Sequence[int], times_ns: Sequence[int], residue: int, duration_ns: int = 0) -> int:
        wrong_ns = [round(told(t / duration_ns) * duration_ns) for t in times_ns]
        return begin(held, wrong_ns, residue, duration_ns)

    governor.job_begin = wrongly


COMPARED = ("STP", "over the base", "least to most", "sets above", "sets below", "waits in mid-iteration")
_ALIKE = 0.003  # below which two are


def compared(found: list[Figures], base: list[Figures]) -> list[Any]:
    """The columns `COMPARED` of the same sets, run in two ways."""
    ratios = [a.stp / b.stp for a, b in zip(found, base, strict=True)]
    return [
        f"{geometric_mean([f.stp for f in found]):.3f}",
        f"{geometric_mean(ratios):.4f}",
        f"{min(ratios):.3f} to {max(ratios):.3f}",
        sum(r > 1 + _ALIKE for r in ratios),
        sum(r < 1 - _ALIKE for r in ratios),
        f"{fmean(f.memory_waits for f in found):.4f}",
    ]
