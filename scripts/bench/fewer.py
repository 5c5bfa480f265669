"""Jobs whose residues leave little room for iterations: is it worth that fewer are there at once?

Random jobs for the simulator, each with the same solo time in all, under `auto`, with the mode `fewer`
(`scheduling/fewer.py`) and without it. Each keeps a part of its peak between iterations. The budget has room for what
all keep and a little more than the largest iteration beyond that, so that each can run by Salus's condition, but no two
iterations overlap by much; or for a part of that, so that some are queued or copied out in any case. With profiles and
without. Told is the time of all over their time one after the other. Copying takes no time there. Nothing of that
depends on the machine.

`--real`: eight equal jobs in the memory of three, one thread each, under `auto` and under `zico`, which sets nobody
aside, forwards and backwards through the list; the time is that of the whole command, start-up and copying included.
"""

import argparse
import itertools
import random
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from statistics import fmean, geometric_mean
from typing import Any

from common import JOBS, conclude, profile, run_gpushare
from simulated_sets import PAGE, of_pages

from gpushare.scheduling import fewer
from gpushare.simulation import Contention, SimulatedJob, simulate
from gpushare.simulation.job import Variation

SOLO_S, PEAK, LITTLE = 40.0, 120, 1.05
_ALIKE = 0.003  # below which two are
NUMBERS, KEPT, CORES, ROOMS = (4, 8, 12), (0.15, 0.35, 0.6), (2.0, 16.0), (1.0, 0.75)
HEADING = [
    "jobs",
    "kept, of the peak",
    "room, of what all need",
    "sets",
    "over serial without",
    "with",
    "with over without",
    "sets faster",
    "sets slower",
    "part of the time with fewer",
    "copies out without",
    "with",
]
REAL = ["policy", "time, s", "over the first", "both advance", "longest wait, s", "copies out"]


@dataclass(frozen=True)
class Case:
    jobs: int
    kept: float  # of each peak, between iterations
    room: float  # of what all keep and the largest iteration
    cores: float
    equal: bool
    profiled: bool
    seed: int


def cases(seeds: int) -> Iterator[Case]:
    for jobs, kept, room in itertools.product(NUMBERS, KEPT, ROOMS):
        for cores, equal, profiled in itertools.product(CORES, (True, False), (True, False)):
            yield from (Case(jobs, kept, room, cores, equal, profiled, seed) for seed in range(seeds))


def job_of(case: Case, i: int) -> SimulatedJob:
    rng = random.Random(case.seed if case.equal else 1000 * case.seed + i)
    peak = PEAK if case.equal else rng.randint(PEAK // 2, PEAK)
    residue, up = round(case.kept * peak), rng.randint(6, 16)
    down = round(up * rng.choice((0.5, 1.0, 2.0)))
    rise = peak - residue
    held = [residue + round(rise * (n + 1) / up) for n in range(up)]
    held += [residue + round(rise * (down - n) / down) for n in range(1, down)]

    def vary(iteration: int) -> Variation:
        return Variation(1.0, random.Random(case.seed + 7919 * i + iteration).uniform(0.85, 1.15))

    step_s = rng.choice((0.01, 0.02, 0.03))
    job = of_pages(f"job {i}", held, residue, step_s, iterations=1, arrival_s=0.0, vary=vary)
    return replace(job, iterations=round(SOLO_S / job.iteration_s), has_profile=case.profiled)


def budget_of(case: Case, jobs: list[SimulatedJob]) -> int:
    """At least what one needs; two pages are the headroom."""
    rise = max(job.peak_bytes - job.residue_bytes for job in jobs)
    needed = case.room * (sum(job.residue_bytes for job in jobs) + 1.1 * rise)
    least = max(job.peak_bytes for job in jobs)
    return max(round(needed / PAGE), least // PAGE) * PAGE + 2 * PAGE


def found(case: Case, *, may_be_fewer: bool) -> dict[str, Any]:
    if not may_be_fewer:
        fewer.best_number = lambda *_: None
    jobs = [job_of(case, i) for i in range(case.jobs)]
    outcome = simulate(
        jobs,
        policy="auto",
        budget_bytes=budget_of(case, jobs),
        contention=Contention(case.cores, LITTLE),
        record=False,
    )
    if not all(job.status == "ok" for job in outcome.jobs):
        raise AssertionError(f"{case}: a job did not end well")
    if not may_be_fewer and "fewer" in outcome.modes_s:
        raise AssertionError("the mode was not left out")
    return {
        "over_serial": outcome.over_serial,
        "modes_s": outcome.modes_s,
        "all_s": outcome.duration_s,
        "copies_out": sum(job.copies_out for job in outcome.jobs),
        "longest_wait_s": max(job.longest_wait_s for job in outcome.jobs),
    }


def both(case: Case) -> tuple[dict[str, Any], dict[str, Any]]:
    """With it first: leaving it out lasts."""
    return found(case, may_be_fewer=True), found(case, may_be_fewer=False)


def row(key: tuple[int, float, float], rows: list[tuple[dict[str, Any], dict[str, Any]]]) -> list[Any]:
    ratios = [with_["over_serial"] / without["over_serial"] for with_, without in rows]
    return [
        *key,
        len(rows),
        f"{geometric_mean([without['over_serial'] for _, without in rows]):.3f}",
        f"{geometric_mean([with_['over_serial'] for with_, _ in rows]):.3f}",
        f"{geometric_mean(ratios):.3f} ({min(ratios):.3f} to {max(ratios):.3f})",
        sum(r < 1 - _ALIKE for r in ratios),
        sum(r > 1 + _ALIKE for r in ratios),
        f"{fmean(with_['modes_s'].get('fewer', 0.0) / with_['all_s'] for with_, _ in rows):.2f}",
        sum(without["copies_out"] for _, without in rows),
        sum(with_["copies_out"] for with_, _ in rows),
    ]


def simulated(seeds: int) -> tuple[list[list[Any]], list[Any]]:
    """A table and figures."""
    all_cases = list(cases(seeds))
    with ProcessPoolExecutor(max_tasks_per_child=1) as workers:
        results = list(workers.map(both, all_cases))
    table: list[list[Any]] = [HEADING]
    for key in itertools.product(NUMBERS, KEPT, ROOMS):
        rows = [r for c, r in zip(all_cases, results, strict=True) if (c.jobs, c.kept, c.room) == key]
        table.append(row(key, rows))
    figures = [
        {"case": vars(c), "with": r[0], "without": r[1]} for c, r in zip(all_cases, results, strict=True)
    ]
    return table, figures


def real(steps: int, jobs: int, peaks: float) -> tuple[list[list[Any]], list[Any]]:
    """The same of eight jobs that really run."""
    job = f"{JOBS / 'deep_cnn.py'} --steps {steps} --batch-size 8 --depth 20"
    peak = profile(job, 1)["peak_held_bytes"]
    runs = []
    for policy in ("zico", "auto", "auto", "zico"):
        summary = run_gpushare([job] * jobs, int(peak * peaks), 1, "--policy", policy)
        runs.append({"policy": policy, "peaks": peaks, **summary})
    base_s = fmean(run["wall_s"] for run in runs if run["policy"] == "zico")
    table: list[list[Any]] = [REAL]
    for policy in ("zico", "auto"):
        mine = [run for run in runs if run["policy"] == policy]
        of_jobs = [one for run in mine for one in run["jobs"]]
        table.append(
            [
                f"{policy}, {jobs} jobs at {peaks} peaks",
                " ".join(f"{run['wall_s']:.1f}" for run in mine),
                f"{fmean(run['wall_s'] for run in mine) / base_s:.3f}",
                f"{fmean(run['overlap_s'] / run['eligible_s'] for run in mine):.2f}",
                f"{max(one['longest_wait_s'] for one in of_jobs):.1f}",
                sum(one["copies_out"] for one in of_jobs),
            ]
        )
    for run in runs:
        for one in run["jobs"]:
            one["command"] = one["command"].replace(f"{JOBS.parent.parent.parent}/", "")
    return table, runs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=2, help="simulated sets of each kind")
    parser.add_argument("--real", type=int, default=0, help="steps of eight real jobs instead")
    parser.add_argument("--jobs", type=int, default=8, help="real ones")
    parser.add_argument("--peaks", type=float, default=3.0, help="of one, that the real ones have")
    parser.add_argument("--name", default="fewer")
    parser.add_argument("--print", action="store_true", help="write no results")
    args = parser.parse_args()
    table, figures = real(args.real, args.jobs, args.peaks) if args.real else simulated(args.seeds)
    conclude(args, figures, table)


if __name__ == "__main__":
    sys.exit(main())
