"""Twenty jobs in one run: do all end with the output that they have alone, in the budget, and does none wait for long?

The same small convolutional network with twenty seeds, so that each has an output of its own, in the memory of
`--peaks` of them beside what all keep. Told of each policy: the time of the whole command, over that of the twenty
under plain python one after the other; the longest wait of any job with its reason, in the whole run and from the
moment on at which all have their profile (until then jobs wait for each other's measurement); how long the rules let
one wait then, first in first out, of each other job a quantum (where they take turns) and two iterations as long as the
longest one that was seen then, and where jobs were set aside as many turns of the others as there are, each with the
time to settle; what was held at most; whether every byte of every output is as under plain python; and
how many times as many iterations the luckiest job did as the least lucky one while all were there.
"""

import argparse
import csv
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common import JOBS, conclude, profile, run_gpushare, run_plain
from outside import Watched

from gpushare.scheduling.fewer import turn_s
from gpushare.scheduling.order import QUANTUM_S
from gpushare.scheduling.settling import SETTLING_S

# One code path of MKL: without it plain python itself does not repeat its last bits.
FIXED = {"MKL_CBWR": "COMPATIBLE"}
PAGE, HEADROOM = 2 << 20, 2
HEADING = ["policy", "time, s", "over plain", "longest wait", "once all have profiles", "bound, s"]
HEADING += ["held peak / budget, MiB", "outputs equal", "iterations, most over least", "copied out"]


@dataclass(frozen=True)
class Plain:
    """All jobs under plain python, one after the other."""

    seconds: float
    outputs: list[str]


def job(seed: int, args: argparse.Namespace) -> str:
    return f"{JOBS / 'deep_cnn.py'} --steps {args.steps} --batch-size 16 --depth 30 --seed {seed}"


def plain(args: argparse.Namespace) -> Plain:
    runs = [run_plain(job(seed, args), 1, FIXED) for seed in range(args.jobs)]
    return Plain(sum(seconds for seconds, _ in runs), [output for _, output in runs])


def budget_of(peak: int, residue: int, args: argparse.Namespace) -> int:
    pages = (args.jobs * residue + args.peaks * (peak - residue)) / PAGE
    return max((round(pages) + HEADROOM) * PAGE, 32 << 20)


def waits_of(logs: Path) -> list[dict[str, Any]]:
    """As `--explain` tells them, the longest first."""
    with (logs / "waits.tsv").open() as file:
        found = [
            {**wait, "asked_s": float(wait["asked_s"]), "waited_s": float(wait["waited_s"])}
            for wait in csv.DictReader(file, delimiter="\t")
        ]
    return sorted(found, key=lambda wait: -wait["waited_s"])


def bound_s(jobs: int, longest_iteration_s: float, waits: list[dict[str, Any]], residue: int) -> float:
    aside = [wait for wait in waits if wait["reason"] == "set-aside"]
    begins = [wait["asked_s"] for wait in aside]
    away = max(
        (sum(w["asked_s"] <= t < w["asked_s"] + w["waited_s"] for w in aside) for t in begins), default=0
    )
    turns = -(-away // max(1, jobs - away))
    turns_s = turns * (turn_s(away * residue) + SETTLING_S)
    return (jobs - 1) * (QUANTUM_S + 2 * longest_iteration_s) + turns_s


def run(policy: str, budget: int, residue: int, expected: Plain, args: argparse.Namespace) -> dict[str, Any]:
    watched, jobs = Watched(args.jobs), [job(seed, args) for seed in range(args.jobs)]
    with tempfile.TemporaryDirectory() as folder:
        options = "--policy", policy, "--explain", "--log-dir", folder
        summary = run_gpushare(jobs, budget, 1, *options, extra=FIXED, observe=watched)
        outputs = [(Path(folder) / f"{one['name']}.out").read_text() for one in summary["jobs"]]
        waits = waits_of(Path(folder))
    steady = watched.steady()
    ready_s = steady[0].at_s - watched.start_s if steady else float("inf")
    longest_s = max((sample.longest_iteration_s for sample in steady), default=0.0)
    done = [n - m for n, m in zip(steady[-1].iterations, steady[0].iterations, strict=True)] if steady else []
    return {
        "policy": policy,
        "seconds": summary["wall_s"],
        "over_plain": summary["wall_s"] / expected.seconds,
        "statuses": sorted({one["status"] for one in summary["jobs"]}),
        "equal": [a == b for a, b in zip(outputs, expected.outputs, strict=True)],
        "held_peak_bytes": summary["pool_peak_bytes"],
        "budget_bytes": budget,
        "longest_wait": next(iter(waits), None),
        "longest_wait_later": next((wait for wait in waits if wait["asked_s"] >= ready_s), None),
        "longest_by_reason": {wait["reason"]: wait["waited_s"] for wait in reversed(waits)},
        "bound_s": bound_s(args.jobs, longest_s, waits, residue),
        "all_there_s": steady[-1].at_s - steady[0].at_s if steady else 0.0,
        "done": done,
        "copies_out": sum(one["copies_out"] for one in summary["jobs"]),
    }


def told(wait: dict[str, Any] | None) -> str:
    if wait is None:
        return "-"
    behind = f" for {wait['for']}" if wait["for"] else ""
    return f"{wait['waited_s']:.2f} s: {wait['job']}, {wait['reason']}{behind}"


def row(found: dict[str, Any]) -> list[Any]:
    held = f"{found['held_peak_bytes'] >> 20} / {found['budget_bytes'] >> 20}"
    equal = f"{sum(found['equal'])} of {len(found['equal'])}"
    done = found["done"]
    apart = f"{max(done)} / {min(done)}: {max(done) / max(1, min(done)):.2f}" if done else "-"
    return [
        found["policy"],
        f"{found['seconds']:.1f}",
        f"{found['over_plain']:.2f}",
        told(found["longest_wait"]),
        told(found["longest_wait_later"]),
        f"{found['bound_s']:.1f}",
        held,
        equal,
        apart,
        found["copies_out"],
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=20)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--peaks", type=float, default=3.0, help="of the memory beside what all keep")
    parser.add_argument("--policies", default="auto,temporal")
    parser.add_argument("--name", default="twenty_jobs")
    parser.add_argument("--print", action="store_true", help="write no results")
    args = parser.parse_args()
    found = profile(job(0, args), 1)
    residue = found["residue_bytes"]
    budget, expected = budget_of(found["peak_held_bytes"], residue, args), plain(args)
    figures = []
    for policy in args.policies.split(","):
        figures.append(run(policy, budget, residue, expected, args))
        print("  ".join(map(str, row(figures[-1]))), file=sys.stderr, flush=True)
    table = [HEADING, *map(row, figures)]
    conclude(args, figures, table)


if __name__ == "__main__":
    main()
