"""Runs that would hang if anybody waited with a lock in hand: do they end, and how."""

import argparse
import shlex
import sys
import tempfile
from pathlib import Path
from typing import Any

from common import JOBS, ROOT, profile, run_gpushare, write

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--restarts", type=int, default=500)
args = parser.parse_args()
HEADING = ["scenario", "ended", "time, s", "forks parked the others", "parked for, s", "overruns", "waits"]
HEADING += ["copied out"]


def row(name: str, summary: dict[str, Any]) -> list[Any]:
    ended = ", ".join(f"{j['status']} after {j['iterations']}" for j in summary["jobs"])
    overruns = sum(j["overruns"] for j in summary["jobs"])
    waits = sum(j["memory_waits"] for j in summary["jobs"])
    copied = sum(j["copies_out"] for j in summary["jobs"])
    parked = summary["park_s"]
    return [
        name,
        ended,
        f"{summary['wall_s']:.1f}",
        summary["parks"],
        f"{parked:.2f}",
        overruns,
        waits,
        copied,
    ]


def doubling(factor: float) -> dict[str, Any]:
    script = JOBS / "doubling.py"
    doubled = profile(f"{script} --batch-size 8192", 1)["peak_held_bytes"]
    return run_gpushare([str(script)] * 2, int(doubled * factor), 1, accept=(0, 1, 3))


def importing() -> dict[str, Any]:
    job = str(JOBS / "importing.py")
    with tempfile.TemporaryDirectory() as folder:
        body = "import time, torch\ntime.sleep(0.2)\ntable = torch.ones(8 << 20)\n"
        (Path(folder) / "allocating_module.py").write_text(body)
        extra = {"PYTHONPATH": folder}
        peak = run_gpushare([job], 1 << 30, 1, extra=extra)["pool_peak_bytes"]
        return run_gpushare([job] * 2, int(peak * 1.1), 1, extra=extra, accept=(0, 1, 3))


def restarts() -> dict[str, Any]:
    job = f"{JOBS / 'loader_restarts.py'} --restarts {args.restarts}"
    return run_gpushare([job] * 2, 200 << 20, 1)


def beside_long_iterations() -> dict[str, Any]:
    """Each fork stops the other job in the middle of an iteration that makes new kernels all the time."""
    forks = f"{JOBS / 'loader_restarts.py'} --restarts {args.restarts}"
    long = f"{JOBS / 'long_convolutions.py'} --iterations {max(1, args.restarts // 12)}"
    return run_gpushare([forks, long], 1 << 30, 1, "--policy", "unmanaged")


def main() -> None:
    runs = {
        "both double their batch at step 10, budget 1.3 doubled peaks": doubling(1.3),
        "the same, budget 1.05 doubled peaks": doubling(1.05),
        "each allocates 32 MiB inside an import of one module": importing(),
        f"two convolutional jobs, 2 DataLoader workers restarted {args.restarts} times": restarts(),
        f"one of these beside one with long iterations, {args.restarts} times": beside_long_iterations(),
    }
    table = [HEADING, *(row(name, summary) for name, summary in runs.items())]
    kept = ("wall_s", "parks", "park_s", "jobs")
    figures = {name: {k: s[k] for k in kept} for name, s in runs.items()}
    for summary in runs.values():
        for job in summary["jobs"]:
            job["command"] = job["command"].replace(f"{ROOT}/", "")
    write("hangs", shlex.join(["python", "scripts/bench/hangs.py", *sys.argv[1:]]), figures, table)


main()
