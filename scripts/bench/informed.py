"""Zico's informed phase: does it pay to begin with less than the budget and to raise it bit by bit?

The paper (section 5) does so since times measured alone are wrong beside others, and a wrong shift exceeds its budget
there. Here a wrong one costs a wait in mid-iteration. Simulated sets of two to six jobs under `zico`, each job slower
beside the others by a factor that its profile does not know: STP with all of the budget from the start on, and with
a budget that begins lower and reaches it in five steps, each as long as `--step` solo iterations of the mean job; the
whole run is 20 of these long. Only sets in which the lower budget still has room for the largest job are counted. The
governor is the product's, and so is the way in which the budget changes.
"""

import argparse
import shlex
import sys
from dataclasses import replace
from typing import Any

from common import write
from simulated_sets import COMPARED, PAGE, Figures, Set, budget_of, compared, jobs_of, run, sets

from gpushare.simulation import Engine

STEPS = 5


def informed(one: Set, factor: float, begin: float, iterations: float) -> Figures:
    """With a budget that begins at this part of the whole."""
    jobs = jobs_of(one)
    whole = budget_of(one, jobs)
    step_s = iterations * sum(job.iteration_s for job in jobs) / len(jobs)
    at = [-1]

    def before(engine: Engine) -> None:
        step = min(STEPS, int(engine.now_s / step_s))
        if step == at[0]:
            return
        at[0] = step
        part = begin + (1 - begin) * step / STEPS
        engine.governor.set_budget(round(whole * part / PAGE) * PAGE)

    return run(one, "zico", factor, before=before)


def has_room(one: Set, begin: float) -> bool:
    """Whether the largest job fits beside what the others keep."""
    jobs = jobs_of(one)
    return budget_of(one, jobs) * begin >= budget_of(replace(one, peaks=1.0), jobs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--begins", default="0.7,0.9", help="parts of the budget to begin with")
    parser.add_argument("--factors", default="1.0,1.3")
    parser.add_argument("--step", type=float, default=1.0)
    parser.add_argument("--name", default="informed")
    args = parser.parse_args()
    all_sets = list(sets(args.seeds))
    table: list[list[Any]] = [["slower by", "begins at", "sets", *COMPARED]]
    figures = {}
    for factor in map(float, args.factors.split(",")):
        at_once = {one: run(one, "zico", factor) for one in all_sets}
        for begin in map(float, args.begins.split(",")):
            counted = [one for one in all_sets if has_room(one, begin)]
            found = [informed(one, factor, begin, args.step) for one in counted]
            figures_of = compared(found, [at_once[one] for one in counted])
            table.append([factor, begin, len(found), *figures_of])
            figures[f"{factor}, {begin}"] = [f.__dict__ for f in found]
    write(args.name, shlex.join(["python", "scripts/bench/informed.py", *sys.argv[1:]]), figures, table)


main()
