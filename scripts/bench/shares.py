"""Equal jobs: does each get its share of the iterations, under every policy, for real and in the simulator?

Four at 1.6 peaks, counted from the moment at which all have their profile until the first of them ends: how many times
as many iterations as the least lucky one the luckiest has done, at that end and at the worst moment in between. The
first iterations say little (one of them more is a large share), so a moment counts once `--few` have been done on the
mean, and again, more strictly, once five times as many have. The real ones are watched by their telemetry five times a
second. In the simulator times wander by a tenth, by seeds of which the worst is told, under the orders `fifo` and
`fair`. A job in its turn goes on for half
a second, which is several iterations of the real job.
"""

import argparse
import itertools
import random
import sys
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from typing import Any

from common import JOBS, conclude, profile, run_gpushare
from outside import Watched
from over_greedy import HEADROOM, PEAK, triangle
from simulated_sets import PAGE

from gpushare.jobs import FAIR, FIFO
from gpushare.simulation import Contention, SimulatedJob
from gpushare.simulation.job import Variation
from gpushare.simulation.rules import Rules
from gpushare.simulation.runs import Settings, engine_for

POLICIES = ("auto", "temporal", "greedy", "zico", "waterwave")
LOOK_S, LATER = 0.2, 5
SHAPES = ((10, 10), (10, 20))  # steps up and down
HEADING = ["jobs", "policy", "order", "time, s", "iterations while all are there", "most over least"]
HEADING += ["at the worst moment", "the same, later"]
Done = Sequence[int]  # iterations of each job


def apart(done: Done) -> float:
    return max(done) / min(done) if min(done) else float("inf")


def worst(moments: Sequence[Done], few: int) -> float | None:
    """Among those at which so many iterations have been done on the mean; None if there is none."""
    return max((apart(done) for done in moments if sum(done) >= few * len(done)), default=None)


def figures_of(moments: Sequence[Done], few: int) -> dict[str, Any]:
    end = moments[-1] if moments else None
    enough = [done for done in moments if sum(done) >= few * len(done)]
    return {
        "done": end,
        "apart": apart(end) if end else None,
        "worst": worst(moments, few),
        "worst_at": max(enough, key=apart, default=None),
        "worst_later": worst(moments, LATER * few),
    }


def real(job: str, peak: int, policy: str, args: argparse.Namespace) -> dict[str, Any]:
    watched = Watched(args.jobs, LOOK_S)
    summary = run_gpushare([job] * args.jobs, int(peak * args.peaks), 1, "--policy", policy, observe=watched)
    steady = watched.steady()
    moments = [[n - m for n, m in zip(s.iterations, steady[0].iterations, strict=True)] for s in steady]
    return {
        "jobs": "deep_cnn",
        "policy": policy,
        "order": FIFO,
        "seconds": summary["wall_s"],
        "held_peak_bytes": summary["pool_peak_bytes"],
        "budget_bytes": summary["budget_bytes"],
        "longest_wait_s": summary["longest_wait_s"],
        **figures_of(moments, args.few),
    }


def about_as_measured(seed: int) -> Callable[[int], Variation]:
    return lambda n: Variation(time=random.Random(seed * 1000 + n).uniform(0.9, 1.1))


@dataclass(frozen=True)
class Case:
    """Of the simulator; `few` and `iterations` as the options."""

    shape: tuple[int, int]
    policy: str
    order: str
    seed: int
    jobs: int
    peaks: float
    iterations: int
    few: int

    @property
    def name(self) -> str:
        return f"simulated triangles, {self.shape[0]}:{self.shape[1]}"


def equal_jobs(case: Case) -> list[SimulatedJob]:
    seeds = [case.seed * case.jobs + i for i in range(case.jobs)]
    return [
        triangle(*case.shape, name=f"job {n}", iterations=case.iterations, vary=about_as_measured(n))
        for n in seeds
    ]


def simulated(case: Case) -> dict[str, Any]:
    budget = (round(case.peaks * PEAK) + HEADROOM) * PAGE
    settings: Settings = {"contention": Contention(float(case.jobs)), "record": False}
    engine = engine_for(equal_jobs(case), case.policy, budget, rules=Rules(order=case.order), **settings)
    moments: list[Done] = []
    with engine.governor:
        while not moments or max(moments[-1]) < case.iterations:
            look_s = engine.now_s + LOOK_S
            while engine.running and engine.now_s < look_s:
                engine.advance()
            moments.append([outcome.iterations for outcome in engine.outcomes()])
    run = {"jobs": case.name, "policy": case.policy, "order": case.order, "seed": case.seed}
    return {**run, "seconds": engine.now_s, **figures_of(moments, case.few)}


def in_the_simulator(args: argparse.Namespace) -> list[dict[str, Any]]:
    every = itertools.product(SHAPES, args.policies.split(","), (FIFO, FAIR), range(args.seeds))
    rest = args.jobs, args.peaks, args.simulated, args.few
    with ProcessPoolExecutor() as workers:
        return list(workers.map(simulated, [Case(*each, *rest) for each in every]))


def worst_of(seeds: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The largest of each ratio over all seeds of a case, and what was done in the run that was the most uneven."""
    last = max(seeds, key=lambda found: found["apart"])
    ratios = {key: _largest(found[key] for found in seeds) for key in ("worst", "worst_later")}
    return {**last, **ratios}


def _largest(ratios: Iterable[float | None]) -> float | None:
    return max((ratio for ratio in ratios if ratio is not None), default=None)


def row(found: dict[str, Any]) -> list[Any]:
    ratios = [found["apart"], found["worst"], found["worst_later"]]
    return [
        found["jobs"],
        found["policy"],
        found["order"],
        f"{found['seconds']:.1f}",
        " ".join(map(str, found["done"] or ["-"])),
        *("-" if ratio is None else f"{ratio:.2f}" for ratio in ratios),
    ]


def for_real(args: argparse.Namespace) -> list[dict[str, Any]]:
    if not args.steps:
        return []
    job = f"{JOBS / 'deep_cnn.py'} --steps {args.steps} --batch-size 32"
    peak, found = profile(job, 1)["peak_held_bytes"], []
    for policy in args.policies.split(","):
        found.append(real(job, peak, policy, args))
        print("  ".join(map(str, row(found[-1]))), file=sys.stderr, flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=4)
    parser.add_argument("--peaks", type=float, default=1.6)
    parser.add_argument("--policies", default=",".join(POLICIES))
    parser.add_argument("--steps", type=int, default=150, help="of each real job; 0: only the simulator")
    parser.add_argument("--simulated", type=int, default=100, help="iterations of each simulated one")
    parser.add_argument("--seeds", type=int, default=5, help="of the simulated times")
    parser.add_argument("--few", type=int, default=4)
    parser.add_argument("--name", default="shares")
    parser.add_argument("--print", action="store_true", help="write no results")
    args = parser.parse_args()
    runs, simulations = for_real(args), in_the_simulator(args)
    of_case = itertools.groupby(
        simulations, key=lambda found: (found["jobs"], found["policy"], found["order"])
    )
    table = [HEADING, *map(row, runs), *(row(worst_of(list(seeds))) for _, seeds in of_case)]
    figures = {"real": runs, "simulated": simulations}
    conclude(args, figures, table)


if __name__ == "__main__":
    main()
