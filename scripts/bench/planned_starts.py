"""Starts in their planned moment: what are they worth where iterations compute for long without an event?

The simulated sets of `simulated_sets.py`, under `zico` and `waterwave`, with the steps of each iteration put together
by 1 (as they are), 16 and 64: so many are one, with the most that is held in any of them. STP without the looks at
doors that are planned (a door is then looked at when somebody frees, and at the sampler's ticks) and with them. The
governor is the product's; nothing here depends on the machine.
"""

import argparse
import itertools
import shlex
import sys
from dataclasses import replace

from common import write
from simulated_sets import COMPARED, Figures, Set, compared, run, sets

from gpushare.simulation import Engine, SimulatedJob

TOGETHER = (1, 16, 64)
POLICIES = ("zico", "waterwave")


def coarse(job: SimulatedJob, together: int) -> SimulatedJob:
    pieces = [job.held_bytes[i : i + together] for i in range(0, len(job.held_bytes), together)]
    held = tuple(max(steps) for steps in pieces)
    return replace(job, held_bytes=held, time_s=job.time_s[::together])


def without_looks(engine: Engine) -> None:
    engine.governor.next_look_ns = lambda: None


def found(one: Set, policy: str, together: int, *, planned: bool) -> Figures:
    before = (lambda _: None) if planned else without_looks
    return run(one, policy, before=before, shape=lambda job: coarse(job, together))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--name", default="planned_starts")
    args = parser.parse_args()
    all_sets = list(sets(args.seeds))
    figures = {}
    table = [["policy", "steps put together", "planned looks", *COMPARED]]
    for policy, together in itertools.product(POLICIES, TOGETHER):
        base = [found(one, policy, together, planned=False) for one in all_sets]
        for planned in (False, True):
            rows = [found(one, policy, together, planned=True) for one in all_sets] if planned else base
            table.append([policy, together, "with" if planned else "without", *compared(rows, base)])
            figures[f"{policy} {together} {planned}"] = [f.__dict__ for f in rows]
    write(args.name, shlex.join(["python", "scripts/bench/planned_starts.py", *sys.argv[1:]]), figures, table)


main()
