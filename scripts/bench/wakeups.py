"""From the free (or the end of an iteration) that makes room to the waiter running again.

Two launch-bound jobs keep the interpreter's lock busy. Measured in the shim, from the grant under its mutex to
the moment at which the waiting thread goes on, with the interpreter's lock taken back where it had it.
"""

import shlex
import sys
from typing import Any

from common import JOBS, profile, run_gpushare, write

STEPS = 240
job = f"{JOBS / 'launch_bound.py'} --depth 1600 --steps {STEPS}"


def main() -> None:
    peak = profile(job, 1)["peak_held_bytes"]
    table: list[list[Any]] = [
        ["budget (solo peaks)", "wake-ups", "median, us", "p99, us", "longest, us", "Python grants"]
    ]
    figures = []
    for factor in (1.6, 1.3, 1.1):
        summary = run_gpushare([job, job], int(peak * factor), 1)
        w = summary["wakes"]
        times = [f"{w[k] * 1e6:.0f}" for k in ("median_s", "p99_s", "longest_s")]
        table.append([factor, w["count"], *times, summary["python_grants"]])
        figures.append({"budget": factor, **w, "python_grants": summary["python_grants"]})
    write("wakeups", shlex.join(["python", "scripts/bench/wakeups.py", *sys.argv[1:]]), figures, table)


main()
