"""Four equal jobs in the memory of 1.6 of them: do planned starts pay? And eight at once: what does the scheduler cost?

Each policy runs the same four jobs, one thread each, forwards and backwards through the list (A B C C B A); the time is
that of the whole command, start-up included. `greedy` starts as soon as that is safe. The scheduler thread's share of
a core is told twice: of the whole run, by the host, and of the steady state, by the kernel: from some seconds after the
last of the eight has its profile (`outside.SETTLED_S`), so that the mode is settled, until the first of them ends.
Planning anew as jobs come and go takes most of the former, so the eight run for a while. They run where all fit at
once, where all can begin but wait for each other, and where they can't all be there at once, so that some are copied
out until others have ended. The longest wait of any job is told, and how often pages were copied out.
"""

import argparse
from statistics import fmean
from typing import Any

from common import JOBS, conclude, profile, run_gpushare
from outside import SETTLED_S, Watched, scheduler_share

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--steps", type=int, default=40)
parser.add_argument("--peaks", type=float, default=1.6)
parser.add_argument("--policies", default="temporal,greedy,zico,waterwave,auto")
parser.add_argument("--name", default="many_jobs")
parser.add_argument("--print", action="store_true", help="write no results")
parser.add_argument(
    "--eight", type=int, default=480, help="steps of eight jobs for the scheduler's cost; 0: not"
)
parser.add_argument("--eight-peaks", default="9,4.5,3", help="budgets of the eight, in peaks of one")
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
    "longest wait, s",
    "copies out",
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
    over = f"{seconds / base_s:.3f}"
    return [policy, times, over, f"{memory_s:.1f}", f"{advance:.2f}", *waits(mine), f"{held:.2f}"]


def waits(runs: list[dict[str, Any]]) -> tuple[str, str]:
    """The longest one of any job, and how often pages were copied out in all."""
    jobs = [job for run in runs for job in run["jobs"]]
    return f"{max(job['longest_wait_s'] for job in jobs):.1f}", str(sum(job["copies_out"] for job in jobs))


def cost() -> tuple[list[list[Any]], list[dict[str, Any]]]:
    """Rows and summaries of eight jobs, where all fit and where they do not."""
    peak = profile(small, 1)["peak_held_bytes"]
    rows, found = [], []
    for peaks in map(float, args.eight_peaks.split(",")):
        watched = Watched(8)
        summary = run_gpushare([small] * 8, int(peak * peaks), 1, observe=watched)
        of_all, steady = summary["scheduler_cpu_s"] / summary["duration_s"], watched.steady(SETTLED_S)
        settled = scheduler_share(steady)
        length_s = steady[-1].at_s - steady[0].at_s if steady else 0.0
        told = "none" if settled is None else f"{settled:.4f} (for {length_s:.0f} s)"
        rows.append(
            [
                f"eight jobs at {peaks} peaks",
                f"{summary['wall_s']:.1f}",
                f"scheduler: of a core, steady state {told}",
                f"whole run {of_all:.4f}",
                f"{summary['python_grants']} doors waited for a permit",
                *waits([summary]),
                f"{summary['pool_peak_bytes'] / peak:.2f}",
            ]
        )
        steady_state = {"scheduler_share_steady": settled, "steady_s": length_s}
        found.append({"peaks": peaks, "scheduler_share": of_all, **steady_state, **summary})
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
    conclude(args, figures, table)


main()
