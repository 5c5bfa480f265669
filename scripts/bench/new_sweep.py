"""The first run of a sweep: jobs of which nothing is known, whose set-ups alone are more than the budget.

Each reads data that it keeps, then trains (`jobs/reads_first.py`); budgets are in peaks of one job. How many are lost,
the time over that of one after the other in plain python, start-up included, how often memory was copied out, and the
longest wait. Each must print what it prints in plain python, or the benchmark fails.
"""

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any

from common import JOBS, add_output_options, conclude, run_gpushare, run_plain

REFUSED = 3
parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--jobs", default="4,12")
parser.add_argument("--budgets", default="1.05,2,4", help="in peaks of one job")
add_output_options(parser, "new_sweep")
args = parser.parse_args()


def job(seed: int) -> str:
    return f"{JOBS / 'reads_first.py'} --seed {seed}"


def serial(count: int) -> dict[str, Any]:
    start = time.monotonic()
    outputs = [run_plain(job(seed), 1)[1] for seed in range(count)]
    return {"wall_s": time.monotonic() - start, "outputs": outputs}


def together(count: int, budget_bytes: int, plain: dict[str, Any]) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as logs:
        jobs = [job(seed) for seed in range(count)]
        summary = run_gpushare(jobs, budget_bytes, 1, "--log-dir", logs, accept=(0, REFUSED))
        names = [each["name"] for each in summary["jobs"]]
        printed = [(Path(logs) / f"{name}.out").read_text() for name in names]
    lost = [each["name"] for each in summary["jobs"] if each["status"] != "ok"]
    for name, out, wanted in zip(names, printed, plain["outputs"], strict=True):
        assert name in lost or out == wanted, name
    assert summary["pool_peak_bytes"] <= budget_bytes
    return {
        "jobs": count,
        "budget_bytes": budget_bytes,
        "lost": len(lost),
        "wall_s": summary["wall_s"],
        "over_plain": summary["wall_s"] / plain["wall_s"],
        "told_s": summary["serial_estimate_s"],
        "copies_out": sum(each["copies_out"] for each in summary["jobs"]),
        "longest_wait_s": summary["longest_wait_s"],
    }


if args.estimate:
    raise SystemExit("about six minutes")
peak = run_gpushare([job(0)], 1 << 30, 1)["pool_peak_bytes"]
figures = []
for count in map(int, args.jobs.split(",")):
    plain = serial(count)
    for factor in map(float, args.budgets.split(",")):
        figures.append({"peaks": factor, **together(count, int(factor * peak), plain)})
heading: list[Any] = [
    "jobs",
    "budget, peaks of one",
    "lost",
    "time, s",
    "over plain, one after the other",
    "copied out",
    "longest wait, s",
]
rows = [
    [
        found["jobs"],
        f"{found['peaks']:g}",
        found["lost"],
        f"{found['wall_s']:.1f}",
        f"{found['over_plain']:.2f}",
        found["copies_out"],
        f"{found['longest_wait_s']:.1f}",
    ]
    for found in figures
]
conclude(args, figures, [heading, *rows])
