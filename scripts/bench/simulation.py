"""The simulator against reality: pairs of the examples on the host device, one intra-op thread per job.

A run's time has start-up, warm-up and profiling in it, which the simulator leaves out. So each pair is run with few
steps and with many, in turns, and the difference of the medians of both is compared with the simulated one. The
machine wanders, so each repeat begins with new profiles of the pair's jobs, as by a user who plans and runs, and the
median of what is simulated from each is compared; how far the longest and the shortest of the same runs are apart
stands beside it. The jobs are also measured alone, in the same way as the pair, between its runs, and a prediction is
held against the runs as a multiple of the jobs' solo times of then, too. Each job does as many steps as take about as
long as those of the slowest alone.

All other pairs than the first ones are predicted in three ways: as `gpushare plan` does it for jobs that have not run
together where other pairs have, by what their profiles say of the GIL and of memory bandwidth, and the rest of the
factor that the first pairs have shown side by side with room for both (`rest_of`); by the profiles alone, as where
nothing has run; and with the first pairs' mean factor for all. Beside the simulator's errors stand those of predicting
the sum and the maximum of the solo times, and what the policy that it picks loses to the best one. How long each run
was in which mode, measured and simulated, is in the JSON.
"""

import argparse
import itertools
import shlex
import statistics
import sys
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from common import add_output_options, write
from example_runs import Measured, Setting, in_the_middle, profile_of

from gpushare.profiles import Profile
from gpushare.simulation import Contention, Outcome, from_profile, simulate
from gpushare.simulation.contention import Felt, forecast, rest_of

NAMES = ("digits_cnn", "autoencoder", "recurrent_lm", "char_transformer")
POLICIES = ("auto", "temporal", "zico", "waterwave")
PAGE, START_UP_S, ROOM = 2 << 20, 5.0, 1.2
_SHARES = ("iteration_s", "cores_busy", "gil_share", "sensitivity", "pressure")
Pair = tuple[str, str]


@dataclass(frozen=True)
class Compared:
    """Seconds of both jobs, from `few` to `many` steps: measured, simulated in three ways, and of the jobs alone.
    `apart_s` is the longest less the shortest of the same runs."""

    pair: Pair
    share: float
    policy: str
    real_s: float
    apart_s: float
    simulated_s: float
    profiles_s: float
    fitted_s: float
    sum_s: float
    most_s: float
    profiled_sum_s: float
    modes_s: dict[str, float]
    simulated_modes_s: dict[str, float]
    profiled: list[dict[str, dict[str, float | None]]]

    def errors(self) -> tuple[float, ...]:
        """Of the simulator, also as a multiple of the solo times; by profiles alone; with the factor; of the sum, of
        the maximum."""
        scaled_s = self.simulated_s * self.sum_s / self.profiled_sum_s
        predicted_s = self.simulated_s, scaled_s, self.profiles_s, self.fitted_s, self.sum_s, self.most_s
        return tuple(map(self._error, predicted_s))

    def _error(self, predicted_s: float) -> float:
        return abs(predicted_s / self.real_s - 1)


def simulated(
    profiles: dict[str, Profile], budget: int, policy: str, contention: Contention, setting: Setting
) -> tuple[float, dict[str, float]]:
    """Seconds from `few` to `many` steps, and how long the run of many is in each mode."""

    def outcome(steps: int) -> Outcome:
        jobs = [
            from_profile(p, name, iterations=setting.steps(name, steps), threads=p.cores_busy or 1.0)
            for name, p in profiles.items()
        ]
        return simulate(jobs, policy=policy, budget_bytes=budget, contention=contention, record=False)

    many = outcome(setting.many)
    return many.duration_s - outcome(setting.few).duration_s, many.modes_s


def budget_of(jobs: Iterable[Profile], share: float) -> int:
    """A share of the sum of the peaks, but at least what the larger one needs beside the other's residue."""
    profiles = list(jobs)
    least = max(p.peak_held_bytes + q.residue_bytes for p, q in itertools.permutations(profiles, 2))
    return max(least + 4 * PAGE, round(share * sum(p.peak_held_bytes for p in profiles)))


def fitted_factor(pair: Pair, profiles: dict[str, Profile], setting: Setting) -> float:
    """The factor at which the simulated time of the pair side by side is the measured one, by bisection."""
    both = {name: profiles[name] for name in pair}
    budget = budget_of(both.values(), ROOM)
    real_s = Measured(pair, budget, "unmanaged", setting).run_all()
    low, high = 1.0, 4.0
    for _ in range(20):
        middle = (low + high) / 2
        contention = Contention(setting.cores, middle)
        faster = simulated(both, budget, "unmanaged", contention, setting)[0] < real_s
        low, high = (middle, high) if faster else (low, middle)
    return low


def felt_by(profiles: dict[str, Profile]) -> list[Felt]:
    """What the profiles foretell that each of two jobs feels of the other."""
    first, second = profiles.values()
    felt = forecast(first, second), forecast(second, first)
    return [f or Felt(0.0, 0.0) for f in felt]


def by_profiles(profiles: dict[str, Profile], setting: Setting, rest: float = 0.0) -> Contention:
    felt = dict(zip([(0, 1), (1, 0)], [replace(f, rest=rest) for f in felt_by(profiles)], strict=True))
    return Contention(
        setting.cores,
        factors={pair: 1 + of.longer for pair, of in felt.items()},
        waits={pair: of.gil for pair, of in felt.items()},
    )


def loss_of_choice(found: list[Compared]) -> float:
    """Time under the policy that the simulator picks over the time under the best one, less 1."""
    picked = min(found, key=lambda c: c.simulated_s)
    return picked.real_s / min(c.real_s for c in found) - 1


def compare(
    pairs: list[Pair],
    factor: float,
    rest: float,
    shares: list[float],
    policies: list[str],
    setting: Setting,
) -> list[Compared]:
    found = []
    for pair, share in itertools.product(pairs, shares):
        taken = [_profiles_of(pair)]
        budget = budget_of(taken[0].values(), share)
        alone = [Measured((name,), budget_of([p] * 2, 1), "zico", setting) for name, p in taken[0].items()]
        runs = {policy: Measured(pair, budget, policy, setting) for policy in policies}
        measured = [*alone, *runs.values()]
        for repeat in range(setting.repeats):
            backwards = repeat % 2 == 1
            if repeat:
                taken.append(_profiles_of(pair))
            for one in measured[:: -1 if backwards else 1]:
                one.run(backwards=backwards)
        alone_s = [one.seconds for one in alone]
        for policy, run in runs.items():
            predicted_s, modes_s = in_the_middle(
                [
                    simulated(both, budget, policy, by_profiles(both, setting, rest), setting)
                    for both in taken
                ],
                lambda outcome: outcome[0],
            )
            profiles_s = statistics.median(
                simulated(both, budget, policy, by_profiles(both, setting), setting)[0] for both in taken
            )
            fitted_s = statistics.median(
                simulated(both, budget, policy, Contention(setting.cores, factor), setting)[0]
                for both in taken
            )
            times = predicted_s, profiles_s, fitted_s, sum(alone_s), max(alone_s), _profiled_s(taken, setting)
            found.append(
                Compared(
                    *(pair, share, policy, run.seconds, run.apart_s, *times),
                    *(run.modes_s, modes_s, [_shares_of(both) for both in taken]),
                )
            )
    return found


def _profiles_of(pair: Pair) -> dict[str, Profile]:
    return {name: profile_of(name) for name in pair}


def _profiled_s(taken: list[dict[str, Profile]], setting: Setting) -> float:
    """Seconds from `few` to `many` steps of one job after the other by their profiles: the median of all taken."""
    steps = setting.many - setting.few
    return statistics.median(
        sum(steps * setting.times[name] * p.iteration_s for name, p in both.items()) for both in taken
    )


def _shares_of(both: dict[str, Profile]) -> dict[str, dict[str, float | None]]:
    return {name: {of: getattr(p, of) for of in _SHARES} for name, p in both.items()}


def tabulate(compared: list[Compared], losses: dict[tuple[Pair, float], float]) -> list[list[Any]]:
    heading = [
        "pair",
        "budget (sum of peaks)",
        "policy",
        "measured, s",
        "runs apart",
        "simulated, s",
    ]
    errors_of = ["error", "as a multiple of solo", "by profiles alone", "with one factor"]
    errors_of += ["of the sum", "of the maximum"]
    table: list[list[Any]] = [[*heading, *errors_of, "loss of the choice"]]
    for c in compared:
        errors = [f"{error:.1%}" for error in c.errors()]
        loss = f"{losses[c.pair, c.share]:.1%}"
        real = [f"{c.real_s:.2f}", f"{c.apart_s / c.real_s:.0%}"]
        table.append([" + ".join(c.pair), c.share, c.policy, *real, f"{c.simulated_s:.2f}", *errors, loss])
    for name, of in (("mean", statistics.mean), ("largest", max)):
        columns = [f"{of(values):.1%}" for values in zip(*(c.errors() for c in compared), strict=True)]
        table.append([name, *["-"] * (len(heading) - 1), *columns, f"{of(list(losses.values())):.1%}"])
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--examples", default=",".join(NAMES))
    parser.add_argument("--policies", default=",".join(POLICIES))
    parser.add_argument("--few", type=int, default=6, help="steps of the short runs")
    parser.add_argument("--many", type=int, default=66, help="steps of the long ones")
    parser.add_argument("--budgets", default="0.6,0.8,1.1", help="shares of the sum of both peaks")
    parser.add_argument("--fit", type=int, default=2, help="pairs that the factor is fitted on")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--cores", type=float, default=2)
    add_output_options(parser, "simulation")
    args = parser.parse_args()
    names, policies = args.examples.split(","), args.policies.split(",")
    shares = [float(share) for share in args.budgets.split(",")]
    pairs = list(itertools.combinations(names, 2))
    fit, others = pairs[: args.fit], pairs[args.fit :]
    if not others:
        parser.error(f"{len(pairs)} pairs are too few: {args.fit} are fitted on, and none is left to predict")
    profiles = {name: profile_of(name) for name in names}
    longest_s = max(p.iteration_s for p in profiles.values())
    times = {name: longest_s / p.iteration_s for name, p in profiles.items()}
    setting = Setting(args.few, args.many, args.repeats, args.cores, times)

    def run_s(pair: tuple[str, ...]) -> float:
        return args.repeats * (2 * START_UP_S + (args.few + args.many) * longest_s * len(pair))

    alone_s = sum(run_s((name,)) for pair in others for name in pair)
    seconds = sum(map(run_s, fit)) + (sum(map(run_s, others)) * len(policies) + alone_s) * len(shares)
    print(
        f"this takes about {seconds / 60:.0f} minutes, less where sharing pays", file=sys.stderr, flush=True
    )
    if args.estimate:
        return
    factors = {" + ".join(pair): fitted_factor(pair, profiles, setting) for pair in fit}
    factor = statistics.mean(factors.values()) if factors else 1.0
    rests = [
        rest_of(factors[" + ".join(pair)], felt_by({name: profiles[name] for name in pair})) for pair in fit
    ]
    rest = statistics.median(rests) if rests else 0.0
    compared = compare(others, factor, rest, shares, policies, setting)
    losses = {
        key: loss_of_choice(list(group))
        for key, group in itertools.groupby(compared, key=lambda c: (c.pair, c.share))
    }
    table = tabulate(compared, losses)
    figures = {
        "factor": factor,
        "fitted_on": factors,
        "rest": rest,
        "profiled": {name: [getattr(p, share) for share in _SHARES] for name, p in profiles.items()},
        "compared": [vars(c) for c in compared],
        "losses": [{"pair": pair, "share": share, "loss": loss} for (pair, share), loss in losses.items()],
    }
    if args.print:
        print(f"factor {factor:.3f}, fitted on {factors}; rest {rest:+.3f}")
        print("\n".join("  ".join(map(str, row)) for row in table))
    else:
        write(args.name, shlex.join(["python", "scripts/bench/simulation.py", *sys.argv[1:]]), figures, table)


if __name__ == "__main__":
    main()
