"""From the free (or the end of an iteration) that makes room to the waiter running again.

Two launch-bound jobs keep the interpreter's lock busy. Measured in the shim, from before the free takes its mutex (or,
where none made the room, from the grant) to the moment at which the waiting thread runs, and from there until it has
the interpreter's lock back. Given the path of `wakeup_bench`, built with -DGPUSHARE_TESTS=ON and no sanitizer, bare
hand-overs between two threads are measured before and after, of which the waking one waits next or computes on: what a
wake-up costs on this machine by itself.
"""

import shlex
import subprocess
import sys
from typing import Any

from common import JOBS, profile, run_gpushare, write

STEPS = 240
job = f"{JOBS / 'launch_bound.py'} --depth 1600 --steps {STEPS}"


BARE = ("bare, the waker waits next", "bare, the waker goes on")


def bare(program: str) -> list[list[Any]]:
    done = subprocess.run([program], check=True, capture_output=True, text=True)
    rows = []
    for name, line in zip(BARE, done.stdout.splitlines(), strict=True):
        count, *times_ns = map(int, line.split())
        rows.append([name, count, *(f"{t / 1e3:.0f}" for t in times_ns), "-", "-", "-"])
    return rows


def microseconds(spread: dict[str, float]) -> list[str]:
    return [f"{spread[k] * 1e6:.0f}" for k in ("median_s", "p99_s", "longest_s")]


def main() -> None:
    peak = profile(job, 1)["peak_held_bytes"]
    heading = ["budget (solo peaks)", "wake-ups", "median, us", "p99, us", "longest, us"]
    heading += ["until the GIL: median, us", "p99, us", "Python grants"]
    table: list[list[Any]] = [heading]
    table += [row for program in sys.argv[1:2] for row in bare(program)]
    figures = []
    for factor in (1.6, 1.3, 1.1):
        summary = run_gpushare([job, job], int(peak * factor), 1)
        wakes, grants = summary["wakes"], summary["python_grants"]
        table.append([factor, wakes["count"], *microseconds(wakes), *microseconds(wakes["gil"])[:2], grants])
        figures.append({"budget": factor, **wakes, "python_grants": grants})
    table += [row for program in sys.argv[1:2] for row in bare(program)]
    write("wakeups", shlex.join(["python", "scripts/bench/wakeups.py", *sys.argv[1:]]), figures, table)


main()
