"""Zico's informed phase: does it pay to begin with less than the budget and to raise it bit by bit?

The paper (section 5) does so since times measured alone are wrong beside others, and a wrong shift exceeds its budget
there. Here a wrong one costs a wait in mid-iteration. Simulated sets of two to six jobs under `zico`, with profiles
that are wrong in two ways: each job is slower beside the others by a factor that its profile does not know, and its
memory comes and goes at other moments than the profile says (later, earlier, or so that what is held around the middle
is held longer, by up to a seventh of the iteration each). What is wrong is learned after each iteration, as by the
product. STP with all of the budget from the start on, and on the same sets with a budget that begins lower and reaches
it in five steps, each as long as `--step` solo iterations of the mean job; a run is `--iterations` of these long. Only
sets in which the lower budget still has room for the largest job are counted. The governor is the product's, and so is
the way in which the budget changes.
"""

import argparse
import itertools
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

from common import conclude
from simulated_sets import COMPARED, PAGE, Figures, Set, Told, budget_of, compared, jobs_of, run_for, sets

from gpushare.simulation import Engine

STEPS, AT_ONCE, BEND = 5, 1.0, 1.5


def longer(part: float) -> float:
    """What lies between a quarter and three quarters is told as if it took 0.71 of that."""
    off = 2 * part - 1
    return 0.5 + (abs(off) ** BEND if off > 0 else -(abs(off) ** BEND)) / 2


# By where a step is in its iteration, where the profile says that it is.
TOLD: dict[str, Told | None] = {
    "right": None,
    "peaks come later": lambda part: part**BEND,
    "peaks come earlier": lambda part: 1 - (1 - part) ** BEND,
    "peaks last longer": longer,
}


@dataclass(frozen=True)
class Case:
    """`begin`: part of the budget to begin with."""

    one: Set
    factor: float
    told: str
    begin: float
    lengths: tuple[int, ...]
    step: float


def has_room(one: Set, begin: float) -> bool:
    """Whether the largest job fits beside what the others keep."""
    jobs = jobs_of(one)
    return budget_of(one, jobs) * begin >= budget_of(replace(one, peaks=1.0), jobs)


def informed(case: Case) -> list[Figures]:
    """Of each length."""
    jobs = jobs_of(case.one)
    whole = budget_of(case.one, jobs)
    step_s = case.step * sum(job.iteration_s for job in jobs) / len(jobs)
    at = [-1]

    def before(engine: Engine) -> None:
        step = min(STEPS, int(engine.now_s / step_s))
        if step == at[0]:
            return
        at[0] = step
        part = case.begin + (1 - case.begin) * step / STEPS
        engine.governor.set_budget(round(whole * part / PAGE) * PAGE)

    raised = {} if case.begin == AT_ONCE else {"before": before}
    return run_for(case.one, "zico", case.factor, lengths=case.lengths, told=TOLD[case.told], **raised)


def cases(args: argparse.Namespace) -> Iterator[Case]:
    lengths = tuple(sorted(map(int, args.iterations.split(","))))
    begins = (AT_ONCE, *map(float, args.begins.split(",")))
    factors = map(float, args.factors.split(","))
    for factor, told, begin in itertools.product(factors, args.told.split(","), begins):
        for one in sets(args.seeds):
            if begin == AT_ONCE or has_room(one, begin):
                yield Case(one, factor, told, begin, lengths, args.step)


Found = dict[tuple[float, str, float, int], dict[Set, Figures]]


def gather(all_cases: Sequence[Case], results: Sequence[list[Figures]]) -> Found:
    """By factor, what the profile is, where the budget begins and the length of the run."""
    found: Found = {}
    for case, figures in zip(all_cases, results, strict=True):
        for length, one in zip(case.lengths, figures, strict=True):
            found.setdefault((case.factor, case.told, case.begin, length), {})[case.one] = one
    return found


def rows(found: Found) -> Iterator[list[Any]]:
    """The base on the same sets before each lower beginning."""
    for (factor, told, begin, length), figures in sorted(found.items(), key=_order):
        if begin == AT_ONCE:
            continue
        base = [found[factor, told, AT_ONCE, length][one] for one in figures]
        setting = [factor, told, length, len(base)]
        yield [*setting, "1 (base)", *compared(base, base)]
        yield [*setting, begin, *compared(list(figures.values()), base)]


def _order(item: tuple[tuple[float, str, float, int], Any]) -> tuple[Any, ...]:
    factor, told, begin, length = item[0]
    return list(TOLD).index(told), factor, length, begin


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--begins", default="0.7,0.9", help="parts of the budget to begin with")
    parser.add_argument("--factors", default="1.0,1.3")
    parser.add_argument("--told", default=",".join(TOLD), help="what the profiles are")
    parser.add_argument("--iterations", default="20,100", help="lengths of the run")
    parser.add_argument("--step", type=float, default=1.0)
    parser.add_argument("--name", default="informed")
    parser.add_argument("--print", action="store_true", help="write no results")
    args = parser.parse_args()
    all_cases = list(cases(args))
    with ProcessPoolExecutor() as workers:
        found = gather(all_cases, list(workers.map(informed, all_cases)))
    table = [["slower by", "profile", "iterations", "sets", "begins at", *COMPARED], *rows(found)]
    figures = [
        {"factor": factor, "profile": told, "begin": begin, "iterations": length, "sets": _as_json(of)}
        for (factor, told, begin, length), of in found.items()
    ]
    conclude(args, figures, table)


def _as_json(figures: dict[Set, Figures]) -> list[dict[str, Any]]:
    return [{**vars(one), **vars(of)} for one, of in figures.items()]


if __name__ == "__main__":
    main()
