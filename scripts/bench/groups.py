"""Jobs of which some slow only each other down: is it worth that these take turns with each other, beside the rest?

Random jobs for the simulator (`simulated_sets.py`), each with the same solo time in all, under `auto`, with the mode
`groups` (`scheduling/groups.py`) and without it. Between some jobs a pair's factor is 2.5 or 4, so that side by side
they are slower than one after the other; all other pairs have 1.05. Told is the time of all over their time one after
the other, once with room for all peaks and once with 0.7 of that. Nothing here depends on the machine.
"""

import argparse
import itertools
import shlex
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from statistics import fmean, geometric_mean
from typing import Any

from common import write
from simulated_sets import PAGE, Set, jobs_of

from gpushare.scheduling import group_search
from gpushare.simulation import Contention, SimulatedJob, simulate

SOLO_S, TOGETHER, LITTLE = 60.0, 8, 1.05
_ALIKE = 0.003  # below which two are
LOSING = {  # who slows whom down, by index
    "none": ((3, ()), (5, ())),
    "one pair": ((3, ((0, 1),)), (4, ((0, 1),)), (6, ((0, 1),))),
    "three": ((4, ((0, 1), (0, 2), (1, 2))), (6, ((0, 1), (0, 2), (1, 2)))),
    "two pairs": ((4, ((0, 1), (2, 3))), (5, ((0, 1), (2, 3)))),
}


HEADING = [
    "who slows whom down",
    "jobs",
    "sets",
    "over serial without groups",
    "with",
    "with over without",
    "sets faster",
    "sets slower",
    "part of the time in groups",
]


@dataclass(frozen=True)
class Case:
    kind: str
    jobs: int
    pairs: tuple[tuple[int, int], ...]
    factor: float
    room: float  # of the sum of all peaks
    seed: int


def cases(seeds: int) -> Iterator[Case]:
    for kind, ways in LOSING.items():
        for (jobs, pairs), factor, room in itertools.product(ways, (2.5, 4.0), (1.0, 0.7)):
            yield from (Case(kind, jobs, pairs, factor, room, seed) for seed in range(seeds))


def coarse(job: SimulatedJob) -> SimulatedJob:
    """With fewer steps; as many iterations as take the solo time."""
    pieces = [job.held_bytes[i : i + TOGETHER] for i in range(0, len(job.held_bytes), TOGETHER)]
    held = tuple(max(steps) for steps in pieces)
    iterations = round(SOLO_S / job.iteration_s)
    return replace(job, held_bytes=held, time_s=job.time_s[::TOGETHER], iterations=iterations)


def found(case: Case, groups: bool) -> dict[str, Any]:
    if not groups:
        group_search.best_groups = lambda *_: None
    jobs = [coarse(job) for job in jobs_of(Set(case.seed, case.jobs, 1.0, 0.2, equal=False))]
    pairs = {*case.pairs, *((j, i) for i, j in case.pairs)}
    factors = {
        (i, j): case.factor if (i, j) in pairs else LITTLE
        for i in range(case.jobs)
        for j in range(case.jobs)
        if i != j
    }
    outcome = simulate(
        jobs,
        policy="auto",
        budget_bytes=round(case.room * sum(job.peak_bytes for job in jobs) / PAGE) * PAGE + 4 * PAGE,
        contention=Contention(float(case.jobs), 1.0, factors),
        record=False,
    )
    if not groups and "groups" in outcome.modes_s:
        raise AssertionError("groups were not left out")
    return {"over_serial": outcome.over_serial, "modes_s": outcome.modes_s, "all_s": outcome.duration_s}


def both(case: Case) -> tuple[dict[str, Any], dict[str, Any]]:
    """With groups first: leaving them out lasts."""
    return found(case, True), found(case, False)


def row(kind: str, jobs: int, rows: list[tuple[dict[str, Any], dict[str, Any]]]) -> list[Any]:
    ratios = [with_["over_serial"] / without["over_serial"] for with_, without in rows]
    return [
        kind,
        jobs,
        len(rows),
        f"{geometric_mean([without['over_serial'] for _, without in rows]):.3f}",
        f"{geometric_mean([with_['over_serial'] for with_, _ in rows]):.3f}",
        f"{min(ratios):.3f} to {max(ratios):.3f}",
        sum(r < 1 - _ALIKE for r in ratios),
        sum(r > 1 + _ALIKE for r in ratios),
        f"{fmean(with_['modes_s'].get('groups', 0.0) / with_['all_s'] for with_, _ in rows):.2f}",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    args = parser.parse_args()
    all_cases = list(cases(args.seeds))
    with ProcessPoolExecutor(max_tasks_per_child=1) as workers:
        results = list(workers.map(both, all_cases))
    table: list[list[Any]] = [HEADING]
    for kind, ways in LOSING.items():
        for jobs, _ in ways:
            rows = [r for c, r in zip(all_cases, results, strict=True) if (c.kind, c.jobs) == (kind, jobs)]
            table.append(row(kind, jobs, rows))
    figures = [
        {"case": vars(c), "with": r[0], "without": r[1]} for c, r in zip(all_cases, results, strict=True)
    ]
    write("groups", shlex.join(["python", "scripts/bench/groups.py", *sys.argv[1:]]), figures, table)


if __name__ == "__main__":
    main()
