"""The rows of `auto.py`: efficiencies of a pair under each policy, and what the modes did meanwhile."""

import math
import statistics
from dataclasses import dataclass
from typing import Any

# Quantiles of Student's distribution at 95 %, by degrees of freedom; the normal one from there on.
STUDENT = (math.nan, 6.314, 2.920, 2.353, 2.132, 2.015, 1.943, 1.895, 1.860, 1.833)
NORMAL = 1.645
CHOOSER = "auto"
HEADING = [
    "pair",
    "budget, MiB",
    "of the sum of peaks",
    "iterations",
    "policy",
    "repeats",
    "s, least",
    "E",
    "lower bound",
    "least to most",
    "of the best fixed",
    "trials lost, % (most)",
    "in modes, %",
    "commit",
]


@dataclass(frozen=True)
class Run:
    """One run of a pair. `seconds`: from the first iteration's start to the last one's end. `modes_s`: how long
    two jobs were there in each mode; none under a policy that does not choose."""

    policy: str
    repeat: int
    seconds: float
    efficiency: float
    modes_s: dict[str, float]
    trials_lost_s: float | None

    @property
    def trials_lost(self) -> float | None:
        """As a part of the time in which two jobs were there."""
        both_s = sum(self.modes_s.values())
        return None if self.trials_lost_s is None or not both_s else self.trials_lost_s / both_s


def lower_bound(values: list[float]) -> float | None:
    """Of the mean; None for one value."""
    if len(values) < 2:
        return None
    quantile = STUDENT[len(values) - 1] if len(values) <= len(STUDENT) else NORMAL
    return statistics.mean(values) - quantile * statistics.stdev(values) / math.sqrt(len(values))


def rows(figures: dict[str, Any]) -> list[list[Any]]:
    """One for each policy of the pair."""
    runs = [Run(**run) for run in figures["runs"]]
    of = {policy: [r for r in runs if r.policy == policy] for policy in dict.fromkeys(r.policy for r in runs)}
    means = {policy: statistics.mean(r.efficiency for r in mine) for policy, mine in of.items()}
    fixed = {policy: mean for policy, mean in means.items() if policy != CHOOSER}
    best = max(fixed, key=lambda policy: fixed[policy], default=None)
    setting = [
        " + ".join(figures["pair"]),
        f"{figures['budget_bytes'] / (1 << 20):.0f}",
        f"{figures['budget_bytes'] / figures['peaks_bytes']:.2f}",
        " + ".join(map(str, figures["steps"])),
    ]
    return [
        [
            *setting,
            policy,
            *_policy_row(mine),
            _of_best(policy, means, best),
            *_modes(mine),
            figures["commit"],
        ]
        for policy, mine in of.items()
    ]


def _policy_row(runs: list[Run]) -> list[Any]:
    values = [run.efficiency for run in runs]
    bound = lower_bound(values)
    return [
        len(runs),
        f"{min(run.seconds for run in runs):.0f}",
        f"{statistics.mean(values):.3f}",
        "-" if bound is None else f"{bound:.3f}",
        f"{min(values):.3f} to {max(values):.3f}",
    ]


def _of_best(policy: str, means: dict[str, float], best: str | None) -> str:
    return f"{means[policy] / means[best]:.3f} ({best})" if best and policy == CHOOSER else "-"


def _modes(runs: list[Run]) -> list[str]:
    """What trials lost, on the mean and at most, and the parts of the time in each mode."""
    lost = [100 * run.trials_lost for run in runs if run.trials_lost is not None]
    told = f"{statistics.mean(lost):.2f} ({max(lost):.2f})" if lost else "-"
    seconds: dict[str, float] = {}
    for run in runs:
        for mode, mode_s in run.modes_s.items():
            seconds[mode] = seconds.get(mode, 0.0) + mode_s
    all_s = sum(seconds.values())
    shares = (
        [f"{mode} {100 * mode_s / all_s:.0f}" for mode, mode_s in sorted(seconds.items())] if all_s else []
    )
    return [told, ", ".join(shares) or "-"]
