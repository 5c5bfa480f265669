"""Four equal jobs in the memory of 1.6 of them: do planned starts pay? And eight at once: what does the scheduler cost?

Each policy runs the same four jobs, one thread each, forwards and backwards through the list (A B C C B A); the time is
that of the whole command, start-up included. `greedy` starts as soon as that is safe. The scheduler thread's CPU time
is told by the host; most of it goes to planning anew as jobs come and go, so the eight run for a while.
"""

import argparse
import shlex
import sys
from statistics import fmean
from typing import Any

from common import JOBS, profile, run_gpushare, write

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--steps", type=int, default=40)
parser.add_argument("--peaks", type=float, default=1.6)
parser.add_argument("--policies", default="temporal,greedy,zico,waterwave,auto")
parser.add_argument(
    "--eight", type=int, default=240, help="steps of eight jobs for the scheduler's cost; 0: not"
)
args = parser.parse_args()

job = f"{JOBS / 'deep_cnn.py'} --steps {args.steps} --batch-size 32"
small = f"{JOBS / 'deep_cnn.py'} --steps {args.eight} --batch-size 8 --depth 20"
policies = args.policies.split(",")
HEADING = [
    "policy",
    "time, s",
    "over temporal",
    "waits for memory, s",
    "both advance",
    "pool peak (solo peaks)",
]


def run(policy: str, budget: int) -> dict[str, Any]:
    found = run_gpushare([job] * 4, budget, 1, "--policy", policy)
    return {"policy": policy, **found}


def row(policy: str, runs: list[dict[str, Any]], base_s: float, peak: int) -> list[Any]:
    mine = [r for r in runs if r["policy"] == policy]
    seconds = fmean(r["wall_s"] for r in mine)
    memory_s = fmean(sum(j["memory_wait_s"] for j in r["jobs"]) for r in mine)
    advance = fmean(r["overlap_s"] / r["eligible_s"] if r["eligible_s"] else 0.0 for r in mine)
    held = max(r["pool_peak_bytes"] for r in mine) / peak
    times = " ".join(f"{r['wall_s']:.1f}" for r in mine)
    return [policy, times, f"{seconds / base_s:.3f}", f"{memory_s:.1f}", f"{advance:.2f}", f"{held:.2f}"]


def cost() -> tuple[list[list[Any]], list[dict[str, Any]]]:
    """Rows and summaries of eight jobs, where all fit and where they do not."""
    peak = profile(small, 1)["peak_held_bytes"]
    rows, found = [], []
    for peaks in (9.0, 3.0):
        summary = run_gpushare([small] * 8, int(peak * peaks), 1)
        share = summary["scheduler_cpu_s"] / summary["duration_s"]
        grants = f"{summary['python_grants']} doors waited for a permit"
        rows.append(
            [
                f"eight jobs at {peaks} peaks",
                f"{summary['wall_s']:.1f}",
                f"scheduler {share:.4f} of a core",
                grants,
                "",
                "",
            ]
        )
        found.append({"peaks": peaks, "scheduler_share": share, **summary})
    return rows, found


def main() -> None:
    peak = profile(job, 1)["peak_held_bytes"]
    budget = int(peak * args.peaks)
    runs = [run(policy, budget) for policy in [*policies, *reversed(policies)]]
    base_s = fmean(r["wall_s"] for r in runs if r["policy"] == policies[0])
    table = [HEADING, *(row(policy, runs, base_s, peak) for policy in policies)]
    more, eight = cost() if args.eight else ([], [])
    table += more
    figures = {"solo_peak_bytes": peak, "runs": runs, "eight": eight}
    for summary in [*runs, *eight]:
        for one in summary["jobs"]:
            one["command"] = one["command"].replace(f"{JOBS.parent.parent.parent}/", "")
    write("many_jobs", shlex.join(["python", "scripts/bench/many_jobs.py", *sys.argv[1:]]), figures, table)


main()
