"""Waterwave's segments: what does it cost or gain to hand memory over a segment at a time?

Simulated sets of two to six jobs, equal and different, at 1.05 to 2.2 peaks, under `waterwave`: STP without leases and
with segments of several sizes, in parts of the set's largest rise; "by curve" is what the product takes, a 16th of each
job's own. Iterations have 90 to 600 steps. The governor is the product's. The same sets in every row, so that ratios
are side by side; nothing here depends on the machine.
"""

import argparse
import shlex
import sys
from typing import Any

from common import write
from simulated_sets import Figures, Set, geometric_mean, jobs_of, run, sets

from gpushare.native.doors import BY_CURVE, NO_LEASES

NONE = "none"
OTHERWISE = {NONE: NO_LEASES, "by curve": BY_CURVE}
MARGIN = 0.003  # below which two are alike


def leased(one: Set, part: str) -> Figures:
    """With segments of this part of the largest rise."""
    largest = max(job.peak_bytes - job.residue_bytes for job in jobs_of(one))
    split_bytes = OTHERWISE.get(part) if part in OTHERWISE else largest // int(part)
    return run(one, "waterwave", segments=lambda *_: split_bytes)


def row(part: str, found: list[Figures], base: list[Figures]) -> list[Any]:
    ratios = [a.stp / b.stp for a, b in zip(found, base, strict=True)]
    return [
        part if part in OTHERWISE else f"1/{part}",
        f"{geometric_mean([f.stp for f in found]):.3f}",
        f"{geometric_mean(ratios):.4f}",
        f"{min(ratios):.3f} to {max(ratios):.3f}",
        sum(r > 1 + MARGIN for r in ratios),
        sum(r < 1 - MARGIN for r in ratios),
        f"{sum(f.memory_waits for f in found) / len(found):.4f}",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument(
        "--parts", default="by curve,4,8,16,32,64", help="segments of 1/N of the largest rise"
    )
    parser.add_argument("--name", default="leases")
    args = parser.parse_args()
    parts = [NONE, *args.parts.split(",")]
    all_sets = list(sets(args.seeds))
    found = {part: [leased(one, part) for one in all_sets] for part in parts}
    heading = [
        "segments",
        "STP",
        "over none",
        "least to most",
        "sets above",
        "sets below",
        "waits in mid-iteration",
    ]
    table = [heading, *(row(part, found[part], found[NONE]) for part in parts)]
    figures = {part: [f.__dict__ for f in rows] for part, rows in found.items()}
    write(args.name, shlex.join(["python", "scripts/bench/leases.py", *sys.argv[1:]]), figures, table)


main()
