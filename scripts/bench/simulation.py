"""The simulator against reality: pairs of the examples on the host device, one intra-op thread per job.

A run's time has start-up, warm-up and profiling in it, which the simulator leaves out. So each pair is run with few
steps and with many, and the difference is compared with the simulated one. The factor of contention is fitted on the
first pairs, side by side with room for both; all others are predicted with it. Beside the simulator's error stand those
of predicting the sum and the maximum of the solo times, and what the policy that it picks loses to the best one.
"""

import argparse
import itertools
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common import EXAMPLES, profile, run_gpushare, write

from gpushare.profiles import Profile
from gpushare.simulation import Contention, from_profile, simulate

NAMES = ("digits_cnn", "autoencoder", "recurrent_lm", "char_transformer")
POLICIES = ("temporal", "zico", "waterwave")
PAGE = 2 << 20
parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--examples", default=",".join(NAMES))
parser.add_argument("--few", type=int, default=6, help="steps of the short runs")
parser.add_argument("--many", type=int, default=66, help="steps of the long ones")
parser.add_argument("--budgets", default="0.6,0.8,1.1", help="shares of the sum of both peaks")
parser.add_argument("--fit", type=int, default=2, help="pairs that the factor is fitted on")
parser.add_argument("--repeats", type=int, default=3)
parser.add_argument("--cores", type=float, default=2)
parser.add_argument("--name", default="simulation")
parser.add_argument("--print", action="store_true", help="write no results")
args = parser.parse_args()
Pair = tuple[str, str]


@dataclass(frozen=True)
class Compared:
    """Seconds of `many - few` steps of both jobs."""

    pair: Pair
    share: float
    policy: str
    real_s: float
    simulated_s: float
    sum_s: float
    most_s: float

    def error(self, predicted_s: float) -> float:
        return abs(predicted_s / self.real_s - 1)


def measure(pair: Pair, budget: int, policy: str) -> float:
    """The shortest of the differences: noise only adds."""

    def wall_s(steps: int) -> float:
        jobs = [f"{EXAMPLES / name}.py --steps {steps}" for name in pair]
        result: float = run_gpushare(jobs, budget, 1, "--policy", policy)["wall_s"]
        return result

    return min(wall_s(args.many) - wall_s(args.few) for _ in range(args.repeats))


def simulated_s(profiles: list[Profile], budget: int, policy: str, factor: float) -> float:
    def duration_s(steps: int) -> float:
        jobs = [from_profile(p, str(i), iterations=steps) for i, p in enumerate(profiles)]
        contention = Contention(args.cores, factor)
        return simulate(
            jobs, policy=policy, budget_bytes=budget, contention=contention, record=False
        ).duration_s

    return duration_s(args.many) - duration_s(args.few)


def budget_of(profiles: list[Profile], share: float) -> int:
    """A share of the sum of the peaks, but at least what the larger one needs beside the other's residue."""
    least = max(p.peak_held_bytes + q.residue_bytes for p, q in itertools.permutations(profiles, 2))
    return max(least + 4 * PAGE, round(share * sum(p.peak_held_bytes for p in profiles)))


def fitted_factor(pairs: list[Pair], profiles: dict[str, Profile]) -> float:
    """The factor at which the simulated time of the pairs side by side is the measured one, by bisection."""
    found = []
    for pair in pairs:
        both = [profiles[name] for name in pair]
        budget = budget_of(both, 1.2)
        real_s = measure(pair, budget, "unmanaged")
        low, high = 1.0, 4.0
        for _ in range(20):
            middle = (low + high) / 2
            slower = simulated_s(both, budget, "unmanaged", middle) < real_s
            low, high = (middle, high) if slower else (low, middle)
        found.append(low)
    return sum(found) / len(found)


def compare(pair: Pair, profiles: dict[str, Profile], factor: float) -> list[Compared]:
    both = [profiles[name] for name in pair]
    solo_s = [p.iteration_s * (args.many - args.few) for p in both]
    found = []
    for share in map(float, args.budgets.split(",")):
        budget = budget_of(both, share)
        for policy in POLICIES:
            real_s = measure(pair, budget, policy)
            simulated = simulated_s(both, budget, policy, factor)
            found.append(Compared(pair, share, policy, real_s, simulated, sum(solo_s), max(solo_s)))
    return found


def loss_of_choice(found: list[Compared]) -> float:
    """Time under the policy that the simulator picks over the time under the best one, less 1."""
    picked = min(found, key=lambda c: c.simulated_s)
    return picked.real_s / min(c.real_s for c in found) - 1


names = args.examples.split(",")
profiles = {name: Profile.from_json(profile(str(Path(EXAMPLES) / f"{name}.py"), 1), name) for name in names}
pairs = list(itertools.combinations(names, 2))
fit, rest = pairs[: args.fit], pairs[args.fit :]
factor = fitted_factor(fit, profiles) if fit else 1.0
compared = [c for pair in rest for c in compare(pair, profiles, factor)]
losses = {
    (pair, share): loss_of_choice(list(group))
    for (pair, share), group in itertools.groupby(compared, key=lambda c: (c.pair, c.share))
}
table: list[list[Any]] = [
    [
        "pair",
        "budget",
        "policy",
        "measured, s",
        "simulated, s",
        "error",
        "error of the sum",
        "of the maximum",
        "loss",
    ]
]
for c in compared:
    errors = [f"{c.error(s):.1%}" for s in (c.simulated_s, c.sum_s, c.most_s)]
    loss = f"{losses[c.pair, c.share]:.1%}"
    table.append(
        [" + ".join(c.pair), c.share, c.policy, f"{c.real_s:.2f}", f"{c.simulated_s:.2f}", *errors, loss]
    )
figures = {
    "factor": factor,
    "fitted_on": fit,
    "compared": [vars(c) for c in compared],
    "losses": [{"pair": pair, "share": share, "loss": loss} for (pair, share), loss in losses.items()],
}
if args.print:
    print(f"factor {factor:.3f}, fitted on {fit}")
    print("\n".join("  ".join(map(str, row)) for row in table))
else:
    write(args.name, shlex.join(["python", "scripts/bench/simulation.py", *sys.argv[1:]]), figures, table)
