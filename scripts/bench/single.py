"""One job under gpushare against plain python, start-up apart, and the start-up itself.

The time of `--steps` iterations is the difference of a long and a short run, so that neither start-up nor the
profile's extra work at the beginning counts. Plain python runs with glibc told to keep its pages, as the pool
does; beside it as it is. Order ABCCBA, the least of the rounds counts.
"""

import argparse
import shlex
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from common import EXAMPLES, KEEP_PAGES, run_gpushare, run_plain, write

JOBS = {
    "digits_cnn": ("--batch-size 128", 5, 30),
    "autoencoder": ("--batch-size 256", 20, 170),
    "char_transformer": ("--batch-size 32", 5, 30),
    "recurrent_lm": ("--batch-size 64", 20, 320),
}
parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--rounds", type=int, default=2)
parser.add_argument("--threads", type=int, default=1)
args = parser.parse_args()
BUDGET = 2 << 30
Runner = Callable[[str], float]


def plain(job: str) -> float:
    return run_plain(job, args.threads)[0]


def kept(job: str) -> float:
    return run_plain(job, args.threads, KEEP_PAGES)[0]


def shared(job: str) -> float:
    return float(run_gpushare([job], BUDGET, args.threads)["wall_s"])


RUNNERS: dict[str, Runner] = {"plain": plain, "plain, pages kept": kept, "gpushare": shared}


def rounds(measure: Callable[[Runner], float]) -> dict[str, float]:
    """The least of each runner's figures, measured in turns."""
    found: dict[str, list[float]] = {name: [] for name in RUNNERS}
    for _ in range(args.rounds):
        for name in [*RUNNERS, *reversed(RUNNERS)]:
            found[name].append(measure(RUNNERS[name]))
    return {name: min(values) for name, values in found.items()}


def steps_s(job: str, few: int, many: int) -> dict[str, float]:
    return rounds(lambda run: run(f"{job} --steps {many}") - run(f"{job} --steps {few}"))


def start_s() -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "start.py"
        script.write_text("import torch\nprint(torch.ones(2).sum().item())\n")
        return rounds(lambda run: run(str(script)))


def main() -> None:
    begun = time.monotonic()
    figures: dict[str, Any] = {}
    table: list[list[Any]] = [["job", *(f"{n}, s" for n in RUNNERS), "gpushare over pages kept"]]
    for name, (options, few, many) in JOBS.items():
        found = figures[name] = steps_s(f"{EXAMPLES / name}.py {options}", few, many)
        ratio = found["gpushare"] / found["plain, pages kept"]
        table.append([f"{name}, {many - few} steps", *(f"{s:.2f}" for s in found.values()), f"{ratio:.3f}"])
    found = figures["start-up"] = start_s()
    more = found["gpushare"] - found["plain"]
    table.append(["start-up", *(f"{s:.2f}" for s in found.values()), f"{more:.2f} s more than plain"])
    figures["took_s"] = time.monotonic() - begun
    write("single", shlex.join(["python", "scripts/bench/single.py", *sys.argv[1:]]), figures, table)


main()
