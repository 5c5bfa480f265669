"""What it costs that each job imports its own copies of installed packages (`isolation/installed.py`).

Two and four jobs of few iterations that import transformers' Trainer and Lightning, with a copy for each job and with
`--share`, in A B B A order, and the same in plain python one after the other. Of each: the time of all, the mean time
that a job took to import, and the most that the process had of memory.
"""

import argparse
import re
import tempfile
from pathlib import Path
from typing import Any

from common import JOBS, add_output_options, conclude, run_gpushare, run_plain

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--jobs", type=int, nargs="+", default=[1, 2, 4])
add_output_options(parser, "own_packages")
args = parser.parse_args()
JOB = f"{JOBS / 'uses_packages.py'} --packages transformers:Trainer,lightning"
SHARED = ("--share", "transformers", "--share", "lightning")


def found(wall_s: float, texts: list[str]) -> dict[str, Any]:
    imports = [float(number) for text in texts for number in re.findall(r"imports ([\d.]+) s", text)]
    peaks = [int(number) for text in texts for number in re.findall(r"peak (\d+) KiB", text)]
    losses = [line for text in texts for line in text.splitlines() if line.startswith("loss")]
    return {"wall_s": wall_s, "imports_s": imports, "peak_kib": max(peaks), "losses": losses}


def together(count: int, *options: str) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as logs:
        jobs = [f"{JOB} --seed {seed}" for seed in range(count)]
        summary = run_gpushare(jobs, 1 << 30, 1, "--log-dir", logs, *options)
        texts = [(Path(logs) / f"{job['name']}.out").read_text() for job in summary["jobs"]]
        return found(summary["wall_s"], texts)


def plain(count: int) -> dict[str, Any]:
    runs = [run_plain(f"{JOB} --seed {seed}", 1) for seed in range(count)]
    return found(sum(wall_s for wall_s, _ in runs), [text for _, text in runs])


def measure(count: int) -> dict[str, list[dict[str, Any]]]:
    kinds = {
        "plain python": lambda: plain(count),
        "a copy each": lambda: together(count),
        "one copy": lambda: together(count, *SHARED),
    }
    runs: dict[str, list[dict[str, Any]]] = {name: [] for name in kinds}
    for name in (*kinds, *reversed(kinds)):
        runs[name].append(kinds[name]())
    losses = [run["losses"] for kind in runs.values() for run in kind]
    assert all(each == losses[0] for each in losses), losses
    return runs


def mean(numbers: list[float]) -> float:
    return sum(numbers) / len(numbers)


if args.estimate:
    raise SystemExit("about three minutes")
figures = {str(count): measure(count) for count in args.jobs}
table: list[list[Any]] = [
    ["jobs", "packages", "time, s", "over plain", "a job's imports, s", "process' memory, MiB"]
]
for count, kinds in figures.items():
    plain_s = mean([run["wall_s"] for run in kinds["plain python"]])
    for name, runs in kinds.items():
        wall_s = mean([run["wall_s"] for run in runs])
        imports_s = mean([each for run in runs for each in run["imports_s"]])
        peak = max(run["peak_kib"] for run in runs) / 1024
        table.append(
            [count, name, f"{wall_s:.1f}", f"{wall_s / plain_s:.2f}", f"{imports_s:.2f}", f"{peak:.0f}"]
        )
conclude(args, figures, table)
