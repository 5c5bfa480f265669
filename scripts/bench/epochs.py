"""Two jobs that train in epochs (`jobs/epochs.py`), side by side and one after the other, each under gpushare.

Each epoch starts DataLoader workers, which the other job stops for, ends with a smaller batch, and is validated. The
serial runs come before and after the pairs (A B B A), profiling and start-up counted on both sides; ratios are those of
the means. Beside it two plain pythons one after the other, and what the summary says: what one after the other would
take, over what that was measured to take, and the pace of the jobs.
"""

import argparse
from typing import Any

from common import JOBS, ROOT, add_output_options, conclude, run_gpushare, run_plain

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--policies", default="auto,unmanaged,temporal")
parser.add_argument("--threads", type=int, default=1, help="intra-op threads of each job")
parser.add_argument("--scale", type=float, default=1.0, help="of the epochs")
add_output_options(parser, "epochs")
args = parser.parse_args()

# Epochs of 20 iterations, of some 1, 2 and 50 ms alone.
SETTINGS = {
    "tiny": "--epochs 40 --width 64",
    "small": "--epochs 40 --width 256",
    "small, workers stay": "--epochs 80 --width 256 --persistent",
    "small, no workers": "--epochs 200 --width 256 --workers 0",
    "large": "--epochs 12 --width 1536",
}
BUDGET = 4 << 30
policies = args.policies.split(",")


def job(setting: str, seed: int) -> str:
    words = setting.split()
    words[1] = str(max(2, round(int(words[1]) * args.scale)))
    return f"{JOBS / 'epochs.py'} {' '.join(words)} --seed {seed}"


def side_by_side(setting: str, policy: str) -> dict[str, Any]:
    jobs = [job(setting, seed) for seed in range(2)]
    return run_gpushare(jobs, BUDGET, args.threads, "--policy", policy)


def serial_s(setting: str) -> float:
    return sum(run_gpushare([job(setting, seed)], BUDGET, args.threads)["wall_s"] for seed in range(2))


def plain_s(setting: str) -> float:
    return sum(run_plain(job(setting, seed), args.threads)[0] for seed in range(2))


def mean(found: list[float]) -> float:
    return sum(found) / len(found)


def measure(setting: str) -> dict[str, Any]:
    serial, plain = [serial_s(setting)], [plain_s(setting)]
    there = [side_by_side(setting, policy) for policy in policies]
    back = [side_by_side(setting, policy) for policy in reversed(policies)]
    plain.append(plain_s(setting))
    serial.append(serial_s(setting))
    pairs = {policy: [there[i], back[-1 - i]] for i, policy in enumerate(policies)}
    for runs in pairs.values():
        for run in runs:
            for one in run["jobs"]:
                one["command"] = one["command"].replace(f"{ROOT}/", "")
    return {"job": setting, "serial_s": serial, "plain_s": plain, "pairs": pairs}


def paces(runs: list[dict[str, Any]]) -> str:
    """Of each mode that was there for a second or more, in both runs."""
    told = []
    for run in runs:
        modes = (run["modes"] or {}).items()
        named = [f"{name} {mode['pace']:.2f}" for name, mode in modes if mode["seconds"] >= 1]
        told.append(", ".join(named) or "-")
    return "; ".join(told)


def rows(name: str, found: dict[str, Any]) -> list[list[Any]]:
    serial, plain = mean(found["serial_s"]), mean(found["plain_s"])
    apart = max(found["serial_s"]) - min(found["serial_s"])
    table: list[list[Any]] = [
        [name, "serial", f"{serial:.1f} ({apart:.1f} apart)", "1", f"{serial / plain:.2f}", "-", "-", "-"]
    ]
    for policy, runs in found["pairs"].items():
        wall_s = mean([run["wall_s"] for run in runs])
        estimates = [run["serial_estimate_s"] for run in runs]
        said = "-" if None in estimates else f"{mean(estimates) / serial:.2f}"
        parked_s = mean([run["park_s"] for run in runs])
        ratios = [f"{wall_s / serial:.2f}", f"{wall_s / plain:.2f}"]
        table.append([name, policy, f"{wall_s:.1f}", *ratios, said, f"{parked_s:.1f}", paces(runs)])
    return table


if args.estimate:
    raise SystemExit("about twelve minutes")
figures = {name: measure(setting) for name, setting in SETTINGS.items()}
heading = [
    "jobs",
    "policy",
    "time, s",
    "over serial",
    "over plain",
    "serial as told/measured",
    "forks waited, s",
    "pace",
]
conclude(args, figures, [heading, *(row for name, found in figures.items() for row in rows(name, found))])
