"""Equal jobs in the simulator: what are planned starts worth against greedy ones, which only have to be safe?

STP under `zico`, `waterwave` and `greedy`, for the shapes whose best schedules are known (`tests/simulation`: triangles
that rise and fall) and for the measured iterations of the examples and of `deep_cnn`, profiled here and now. Each job
has a core and feels nothing of the others, and each iteration is the measured one: it is the order of starts alone
that differs. Budgets are in peaks of one job. Nothing but the measured shapes depends on the machine.
"""

import argparse
import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from common import EXAMPLES, JOBS, conclude, profile
from simulated_sets import PAGE, Vary, of_pages

from gpushare.profiles import Profile
from gpushare.simulation import Contention, Outcome, SimulatedJob, from_profile, simulate
from gpushare.simulation.job import as_measured

PLANNED, BASE = ("zico", "waterwave"), "greedy"
PEAK, HEADROOM, ITERATIONS = 1000, 2, 30  # pages; the governor's; of each job
TRIANGLES = {
    "triangle, 1:1": (40, 40),
    "triangle, 1:2": (30, 60),
    "triangle, 2:1": (60, 30),
}  # steps up, down
MEASURED = {
    **{
        name: f"{EXAMPLES / name}.py"
        for name in ("digits_cnn", "autoencoder", "recurrent_lm", "char_transformer")
    },
    "deep_cnn": f"{JOBS / 'deep_cnn.py'} --batch-size 32",
}
HEADING = ["shape", "jobs", "budget (peaks)", "STP at most", "greedy: STP", "waits in mid-iteration"]
HEADING += [f"{name}{of}" for name in PLANNED for of in (": STP", " over greedy", ": waits in mid-iteration")]


def triangle(
    up: int, down: int, *, name: str = "", iterations: int = ITERATIONS, vary: Vary = as_measured
) -> SimulatedJob:
    """Held pages rise to the peak and fall to nothing; an iteration takes a second."""
    held = [round(PEAK * (i + 1) / up) for i in range(up)]
    held += [round(PEAK * (down - i - 1) / down) for i in range(down)]
    return of_pages(name, held, 0, 1 / (up + down), iterations=iterations, arrival_s=0.0, vary=vary)


def measured(script: str) -> SimulatedJob:
    found = Profile.from_json(profile(f"{script} --steps {10**6}", 1), script)  # the profile ends the script
    return replace(from_profile(found, script, iterations=ITERATIONS), kinds=())


def budget_of(job: SimulatedJob, jobs: int, peaks: float) -> int:
    """In whole pages, with the governor's headroom; enough for one beside what the others keep."""
    least = job.peak_bytes + (jobs - 1) * job.residue_bytes
    return (max(round(peaks * job.peak_bytes), least) // PAGE + HEADROOM) * PAGE


def most(job: SimulatedJob, jobs: int, peaks: float) -> float:
    """No schedule has a larger STP: by the memory that an iteration holds over its time."""
    ends = [*job.time_s[1:], job.iteration_s]
    beyond = [
        max(0, held - job.residue_bytes) * (end - begin)
        for held, begin, end in zip(job.held_bytes, job.time_s, ends, strict=True)
    ]
    room = budget_of(job, jobs, peaks) - HEADROOM * PAGE - jobs * job.residue_bytes
    return min(float(jobs), room * job.iteration_s / sum(beyond))


def outcome(job: SimulatedJob, jobs: int, peaks: float, policy: str) -> Outcome:
    several = [replace(job, name=f"job {i}") for i in range(jobs)]
    return simulate(
        several,
        policy=policy,
        budget_bytes=budget_of(job, jobs, peaks),
        contention=Contention(float(jobs)),
        record=False,
    )


def waits(found: Outcome) -> float:
    """Seconds that jobs waited in mid-iteration, of all together per second."""
    return sum(job.memory_wait_s for job in found.jobs) / found.duration_s


def compared(name: str, job: SimulatedJob, jobs: int, peaks: float) -> dict[str, Any]:
    runs = {policy: outcome(job, jobs, peaks, policy) for policy in (BASE, *PLANNED)}
    return {
        "shape": name,
        "jobs": jobs,
        "peaks": peaks,
        "budget_bytes": budget_of(job, jobs, peaks),
        "most": most(job, jobs, peaks),
        "stp": {policy: found.stp for policy, found in runs.items()},
        "memory_waits": {policy: waits(found) for policy, found in runs.items()},
    }


def row(found: dict[str, Any]) -> list[Any]:
    stp, waited = found["stp"], found["memory_waits"]
    cells = [found["shape"], found["jobs"], found["peaks"], f"{found['most']:.2f}"]
    cells += [f"{stp[BASE]:.3f}", f"{waited[BASE]:.3f}"]
    for name in PLANNED:
        cells += [f"{stp[name]:.3f}", f"{stp[name] / stp[BASE]:.2f}", f"{waited[name]:.3f}"]
    return cells


def numbers(of: Callable[[str], Any]) -> Callable[[str], list[Any]]:
    return lambda text: [of(part) for part in text.split(",")]


def shapes(examples: Sequence[str]) -> dict[str, SimulatedJob]:
    found = {name: triangle(*steps) for name, steps in TRIANGLES.items()}
    return {**found, **{f"{name}, measured": measured(MEASURED[name]) for name in examples}}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=numbers(int), default=[2, 3, 4, 5, 6])
    parser.add_argument("--peaks", type=numbers(float), default=[1.2, 1.6, 2.2])
    parser.add_argument("--measured", default=",".join(MEASURED), help="of these; empty: of none")
    parser.add_argument("--name", default="over_greedy")
    parser.add_argument("--print", action="store_true", help="write no results")
    args = parser.parse_args()
    every = itertools.product(
        shapes([name for name in args.measured.split(",") if name]).items(), args.jobs, args.peaks
    )
    figures = [
        compared(name, job, jobs, peaks)
        for (name, job), jobs, peaks in every
        if peaks < jobs  # else all run at once
    ]
    table = [HEADING, *map(row, figures)]
    conclude(args, figures, table)


if __name__ == "__main__":
    main()
