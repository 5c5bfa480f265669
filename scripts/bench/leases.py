"""Waterwave's segments: what does it cost or gain to hand memory over a segment at a time?

Simulated sets of two to six jobs, equal and different, at 1.05 to 2.2 peaks, under `waterwave`: STP without leases and
with segments of several sizes, in parts of the set's largest rise; "by curve" is what the product takes, a 16th of each
job's own. Iterations have 90 to 600 steps. The governor is the product's. The same sets in every row, so that ratios
are side by side; nothing here depends on the machine.
"""

import argparse
import shlex
import sys

from common import write
from simulated_sets import COMPARED, Figures, Set, compared, jobs_of, run, sets

from gpushare.native.doors import BY_CURVE, NO_LEASES

NONE = "none"
OTHERWISE = {NONE: NO_LEASES, "by curve": BY_CURVE}


def leased(one: Set, part: str) -> Figures:
    """With segments of this part of the largest rise."""
    largest = max(job.peak_bytes - job.residue_bytes for job in jobs_of(one))
    split_bytes = OTHERWISE.get(part) if part in OTHERWISE else largest // int(part)
    return run(one, "waterwave", segments=lambda *_: split_bytes)


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
    table = [["segments", *COMPARED]]
    for part in parts:
        name = part if part in OTHERWISE else f"1/{part}"
        table.append([name, *compared(found[part], found[NONE])])
    figures = {part: [f.__dict__ for f in rows] for part, rows in found.items()}
    write(args.name, shlex.join(["python", "scripts/bench/leases.py", *sys.argv[1:]]), figures, table)


main()
