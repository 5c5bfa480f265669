"""Jobs on a GPU: one under gpushare against plain python, two together at several budgets, and what they hold.

Times are the difference of a long and a short run, so that neither start-up nor the profile counts; plain and shared
runs alternate (A B B A), and the least of the rounds counts. "Together" is the time of both at once over the time of
the same two under gpushare one after the other. A row that can't be measured says why. Not yet run on a GPU.
"""

import argparse
import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from common import run_gpushare, run_plain, write

HERE = Path(__file__).parent
WORKLOADS = {
    "resnet50": "resnet.py --width 64 --side 224 --batch-size 64",
    "bert": "bert.py",
    "gpt": "gpt.py --width 768 --depth 12 --length 1024 --batch-size 8",
    "gnmt": "gnmt.py",
    "nasnet": "nasnet.py",
    "dcgan": "gan.py --width 64",
    "pointnet": "pointnet.py",
}
PAIRS = ("resnet50+bert", "resnet50+resnet50", "gpt+gnmt", "nasnet+dcgan", "pointnet+pointnet")
EXPANDABLE = {
    "PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True",
    "PYTORCH_ALLOC_CONF": "expandable_segments:True",
}


@dataclass(frozen=True)
class Bench:
    """What is the same for all rows; `sizes` are more options for each workload."""

    device: str
    few: int
    many: int
    rounds: int
    budget_bytes: int
    sizes: str

    def job(self, workload: str, steps: int) -> str:
        return (
            f"{HERE / 'workloads'}/{WORKLOADS[workload]} {self.sizes} --device {self.device} --steps {steps}"
        )

    def shared(self, workloads: list[str], steps: int, budget_bytes: int) -> dict[str, Any]:
        jobs = [self.job(workload, steps) for workload in workloads]
        return run_gpushare(jobs, budget_bytes, None, "--device", self.device)


@dataclass
class Row:
    """Seconds, bytes and ratios; `why` if they could not be measured."""

    name: str
    figures: dict[str, float] = field(default_factory=dict)
    why: str = ""


def measured(name: str, measure: Callable[[dict[str, float]], None]) -> Row:
    """What was found before a failure is kept."""
    row = Row(name)
    try:
        measure(row.figures)
    except (SystemExit, subprocess.CalledProcessError, KeyError, ValueError, OSError) as error:
        said = getattr(error, "stderr", None) or str(error)
        row.why = " | ".join(said.strip().splitlines()[-3:])[-300:]
    return row


def alone(bench: Bench, workload: str, found: dict[str, float]) -> None:
    """One job: its time under gpushare over plain python's, and its memory over what torch's allocator holds."""

    def plain(steps: int) -> float:
        return run_plain(bench.job(workload, steps), None)[0]

    def shared(steps: int) -> float:
        return float(bench.shared([workload], steps, bench.budget_bytes)["wall_s"])

    times: dict[str, list[float]] = {"plain_s": [], "gpushare_s": []}
    for _ in range(bench.rounds):
        for name, run in (
            ("plain_s", plain),
            ("gpushare_s", shared),
            ("gpushare_s", shared),
            ("plain_s", plain),
        ):
            times[name].append(run(bench.many) - run(bench.few))
    found.update({name: min(values) for name, values in times.items()})
    found["time_over_plain"] = found["gpushare_s"] / found["plain_s"]
    memory(bench, workload, found)


def memory(bench: Bench, workload: str, found: dict[str, float]) -> None:
    (job,) = bench.shared([workload], bench.few, bench.budget_bytes)["jobs"]
    found["held_bytes"], found["live_bytes"] = job["held_peak_bytes"], job["live_peak_bytes"]
    found["reserved_bytes"] = native_peak(bench, workload, {})
    found["reserved_expandable_bytes"] = native_peak(bench, workload, EXPANDABLE)


def native_peak(bench: Bench, workload: str, environment: dict[str, str]) -> int:
    command = [sys.executable, str(HERE / "native_peak.py"), *bench.job(workload, bench.few).split()]
    done = subprocess.run(
        command, env={**os.environ, **environment}, check=True, capture_output=True, text=True
    )
    word, reserved, _ = done.stderr.splitlines()[-1].split()
    if word != "native":
        raise ValueError(f"no peak was told: {done.stderr}")
    return int(reserved)


def pair(bench: Bench, names: str, budgets: list[float], found: dict[str, float]) -> None:
    """Two jobs together at budgets in the larger one's peaks, against one after the other."""
    workloads = names.split("+")
    solo_s, peaks = [], []
    for workload in workloads:
        runs = [bench.shared([workload], steps, bench.budget_bytes) for steps in (bench.many, bench.few)]
        solo_s.append(runs[0]["wall_s"] - runs[1]["wall_s"])
        peaks.append(runs[0]["jobs"][0]["held_peak_bytes"])
    found["peak_bytes"], found["one_after_the_other_s"] = max(peaks), sum(solo_s)
    for budget in budgets:
        bytes_ = int(max(peaks) * budget)
        long, short = (bench.shared(workloads, steps, bytes_) for steps in (bench.many, bench.few))
        found[f"together_at_{budget:g}"] = (long["wall_s"] - short["wall_s"]) / sum(solo_s)
        found[f"pool_peak_at_{budget:g}"] = long["pool_peak_bytes"] / max(peaks)
        found[f"advancing_together_at_{budget:g}"] = long["overlap_s"] / max(long["eligible_s"], 1e-9)


def shown(name: str, value: float) -> str:
    return f"{value / 2**20:.0f} MiB" if name.endswith("_bytes") else f"{value:.3f}"


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--alone", nargs="*", choices=WORKLOADS, default=list(WORKLOADS), metavar="WORKLOAD")
    parser.add_argument("--pairs", nargs="*", default=list(PAIRS), metavar="WORKLOAD+WORKLOAD")
    parser.add_argument("--budgets", default="1.05,1.1,1.3,1.6,2", help="of pairs, in the larger peak")
    parser.add_argument("--steps", type=int, nargs=2, default=(10, 60), metavar=("FEW", "MANY"))
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--budget", type=int, default=16 << 30, help="bytes, for jobs alone")
    parser.add_argument("--sizes", default="", help="more options for every workload")
    parser.add_argument("--name", default="gpu")
    given = parser.parse_args()
    for names in given.pairs:
        if unknown := set(names.split("+")) - set(WORKLOADS):
            parser.error(f"no such workload: {', '.join(sorted(unknown))}; there are {', '.join(WORKLOADS)}")
    return given


def main() -> None:
    given = arguments()
    few, many = given.steps
    bench = Bench(given.device, few, many, given.rounds, given.budget, given.sizes)
    budgets = [float(budget) for budget in given.budgets.split(",")]
    rows = [measured(name, lambda found, name=name: alone(bench, name, found)) for name in given.alone]
    rows += [
        measured(name, lambda found, name=name: pair(bench, name, budgets, found)) for name in given.pairs
    ]
    table: list[list[Any]] = [["jobs", "figure", "value"]]
    for row in rows:
        table += [[row.name, name, shown(name, value)] for name, value in row.figures.items()]
        table += [[row.name, "not measured", row.why]] if row.why else []
    figures = [{"jobs": row.name, "why": row.why, **row.figures} for row in rows]
    write(given.name, f"python {shlex.join(sys.argv)}", figures, table)


if __name__ == "__main__":
    main()
