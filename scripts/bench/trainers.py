"""Two jobs that a trainer of a package runs (`jobs/trains_by_package.py`): mostly Python, whose interpreter they share.

Side by side under gpushare, one after the other under gpushare, and both in plain python, in A B B A order, imports and
start-up included. Beside the times: what the summary says one after the other would take, over what that was measured
to take, and what the jobs' scripts waited for Python's lock. All train to the same weights, or the benchmark fails.
"""

import argparse
import re
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import fmean
from typing import Any

from common import JOBS, add_output_options, conclude, run_gpushare, run_plain

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--epochs", type=int, default=20)
add_output_options(parser, "trainers")
args = parser.parse_args()
SETTINGS = {
    "lightning": "--package lightning",
    "lightning, 2 workers": "--package lightning --workers 2",
    "transformers": "--package transformers",
}


def jobs(setting: str) -> list[str]:
    words = f"{JOBS / 'trains_by_package.py'} {SETTINGS[setting]} --epochs {args.epochs}"
    return [f"{words} --seed {seed}" for seed in range(2)]


def weights(texts: list[str]) -> list[str]:
    return [found for text in texts for found in re.findall(r"trained to (\w+)", text)]


def side_by_side(setting: str) -> dict[str, Any]:
    return under_gpushare(jobs(setting))


def under_gpushare(of: list[str]) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as logs:
        summary = run_gpushare(of, 1 << 30, 1, "--log-dir", logs)
        texts = [(Path(logs) / f"{job['name']}.out").read_text() for job in summary["jobs"]]
    return {
        "wall_s": summary["wall_s"],
        "told_s": summary["serial_estimate_s"],
        "gil_waits_s": [job["gil_wait_s"] for job in summary["jobs"]],
        "modes": summary["modes"],
        "weights": weights(texts),
    }


def serial(setting: str) -> dict[str, Any]:
    runs = [under_gpushare([job]) for job in jobs(setting)]
    return {
        "wall_s": sum(run["wall_s"] for run in runs),
        "weights": [w for run in runs for w in run["weights"]],
    }


def plain(setting: str, at_once: int) -> dict[str, Any]:
    start = time.monotonic()
    with ThreadPoolExecutor(at_once) as pool:
        texts = [text for _, text in pool.map(lambda job: run_plain(job, 1), jobs(setting))]
    return {"wall_s": time.monotonic() - start, "weights": weights(texts)}


def measure(setting: str) -> dict[str, list[dict[str, Any]]]:
    kinds = {
        "plain, one after the other": lambda: plain(setting, 1),
        "plain, both at once": lambda: plain(setting, 2),
        "gpushare, one after the other": lambda: serial(setting),
        "gpushare, both at once": lambda: side_by_side(setting),
    }
    runs: dict[str, list[dict[str, Any]]] = {name: [] for name in kinds}
    for name in (*kinds, *reversed(kinds)):
        runs[name].append(kinds[name]())
    trained = [run["weights"] for kind in runs.values() for run in kind]
    assert len(trained[0]) == 2 and all(each == trained[0] for each in trained), trained
    return runs


def rows(setting: str, kinds: dict[str, list[dict[str, Any]]]) -> list[list[Any]]:
    wall_s = {name: fmean([run["wall_s"] for run in runs]) for name, runs in kinds.items()}
    serial_s, plain_s = wall_s["gpushare, one after the other"], wall_s["plain, one after the other"]
    table = []
    for name, runs in kinds.items():
        told = " ".join(f"{run['told_s'] / serial_s:.2f}" for run in runs if "told_s" in run) or "-"
        waits = fmean([sum(run.get("gil_waits_s", [0])) for run in runs])
        spread = abs(runs[0]["wall_s"] - runs[1]["wall_s"])
        table.append(
            [
                setting,
                name,
                f"{wall_s[name]:.1f} ({spread:.1f} apart)",
                f"{wall_s[name] / plain_s:.2f}",
                told,
                f"{waits:.1f}" if told != "-" else "-",
            ]
        )
    return table


if args.estimate:
    raise SystemExit("about six minutes")
figures = {setting: measure(setting) for setting in SETTINGS}
heading: list[Any] = [
    "jobs",
    "how",
    "time, s",
    "over plain serial",
    "serial as told/measured",
    "both jobs' waits for the GIL, s",
]
conclude(
    args, figures, [heading, *(row for setting, kinds in figures.items() for row in rows(setting, kinds))]
)
