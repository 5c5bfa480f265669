"""What a job with short iterations pays for being under gpushare.

Milliseconds per iteration past the profile, as the script itself measures them: plain python with its pages kept,
gpushare alone, gpushare beside a job that is busy in Python all the time, and the same two as threads without gpushare,
with an eighth of the iterations. In turns, the median of the rounds.
"""

import argparse
import re
import shlex
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from common import JOBS, KEEP_PAGES, environment, run_gpushare, run_plain, write

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--rounds", type=int, default=5)
parser.add_argument("--steps", type=int, default=1000)
args = parser.parse_args()
SCRIPT = JOBS / "short_steps.py"
JOB, BESIDE = f"{SCRIPT} --steps {args.steps}", f"{SCRIPT} --steps {args.steps // 8}"
BUSY_S = 45
BUSY = f"{SCRIPT} --busy --seconds {BUSY_S}"
THREADS = f"""
import runpy, sys, threading
def run(*words):
    sys.argv = list(words)
    runpy.run_path(words[0], run_name="__main__")
import torch
busy = threading.Thread(target=run, args={tuple(BUSY.split())}, daemon=True)
busy.start()
import time; time.sleep(0.5)
run(*{BESIDE.split()})
print("still busy" if busy.is_alive() else "")
sys.stdout.flush()
import os; os._exit(0)
"""


def found(text: str) -> float:
    match = re.search(r"([\d.]+) ms per iteration", text)
    assert match, text
    return float(match.group(1))


def plain() -> float:
    return found(run_plain(JOB, 1, KEEP_PAGES)[1])


def under(*jobs: str) -> float:
    with tempfile.TemporaryDirectory() as logs:
        summary = run_gpushare(list(jobs), 1 << 30, 1, "--log-dir", logs)
        lengths_s = [job["duration_s"] for job in summary["jobs"]]
        assert lengths_s[0] <= min(lengths_s), f"the other job was not busy to the end: {lengths_s} s"
        return found((Path(logs) / "short_steps.out").read_text())


def as_threads() -> float:
    with tempfile.TemporaryDirectory() as home:
        env = environment(1, Path(home), KEEP_PAGES)
        done = subprocess.run(
            [sys.executable, "-c", THREADS], env=env, check=True, capture_output=True, text=True
        )
        assert "still busy" in done.stdout, f"the other thread was not busy to the end: {done.stdout}"
        return found(done.stdout)


CASES: dict[str, Callable[[], float]] = {
    "plain python, pages kept": plain,
    "gpushare": lambda: under(JOB),
    "two threads without gpushare": as_threads,
    "gpushare beside a busy job": lambda: under(BESIDE, BUSY),
}


def main() -> None:
    times: dict[str, list[float]] = {name: [] for name in CASES}
    for turn in range(args.rounds):
        for name in list(CASES)[:: 1 if turn % 2 == 0 else -1]:
            times[name].append(CASES[name]())
    medians = {name: statistics.median(values) for name, values in times.items()}
    against = {
        "gpushare": "plain python, pages kept",
        "gpushare beside a busy job": "two threads without gpushare",
    }
    table: list[list[Any]] = [["case", "ms per iteration (median)", "least to most", "ratio"]]
    for name, values in times.items():
        ratio = f"{medians[name] / medians[against[name]]:.3f}" if name in against else "1"
        table.append([name, f"{medians[name]:.3f}", f"{min(values):.3f} to {max(values):.3f}", ratio])
    write(
        "isolation_cost",
        shlex.join(["python", "scripts/bench/isolation_cost.py", *sys.argv[1:]]),
        times,
        table,
    )


main()
