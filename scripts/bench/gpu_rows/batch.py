"""The largest batch of two copies together, over the largest of one alone in the same budget C.

Two copies need at least C less both residues for what one iteration needs beyond its own, one alone C less one:
the bound is the ratio of these. At the largest batch of both the figures of a pair are taken.
"""

from collections.abc import Callable

from . import pair
from .bench import Bench
from .row import NotMeasured, Row
from .running import Ran

WHAT = "the largest batch of two copies together over the largest alone, in one budget"
TARGET = 0.95  # of the bound
LEAST_TOGETHER = 0.2
ALONE_STEPS, TOGETHER_STEPS = 6, 20  # the profile, and some more beside each other
FAILED, REFUSED = 1, 3


def largest(fits: Callable[[int], bool], guess: int, most: int | None, grain: int) -> int:
    """The largest size that fits, to a `grain`th of it, by doubling and bisection; 0 if not even 1 does.

    `most` is the largest to be tried; None: there is none.
    """
    fitting, failing = 0, None if most is None else most + 1
    size = guess
    while failing is None or failing - fitting > max(1, fitting // grain):
        if fits(size):
            fitting = size
        else:
            failing = size
        size = 2 * size if failing is None else (fitting + failing) // 2
    return fitting


def measure(bench: Bench, workload: str, guess: int, row: Row) -> None:
    budget, grain = bench.settings.batch_budget_bytes, bench.settings.batch_grain
    residues: dict[int, int | None] = {}

    def alone(batch: int) -> bool:
        ran = run(bench, workload, 1, batch, ALONE_STEPS)
        residues[batch] = ran.residue_bytes if ran else None
        return ran is not None

    def together(batch: int) -> bool:
        ran = run(bench, workload, 2, batch, TOGETHER_STEPS)
        return ran is not None and side_by_side(ran)

    one = largest(alone, guess, None, grain)
    row.figures |= {"budget_bytes": budget, "largest_alone": one}
    residue = residues.get(one)
    if residue is None:
        raise NotMeasured("not even a batch of 1 ran alone" if not one else "no profile was kept")
    bound = max(0.0, (budget - 2 * residue) / (budget - residue))
    row.figures |= {"residue_bytes": residue, "bound": bound}
    two = largest(together, max(1, int(bound * one)), one, grain)
    row.figures |= {"largest_together": two, "ratio": two / one}
    row.claims[f"two copies reach {TARGET} of the bound"] = two / one >= TARGET * bound
    if two:
        row.part("at the largest batch", lambda: at(bench, workload, two, row))


def run(bench: Bench, workload: str, copies: int, batch: int, steps: int) -> Ran | None:
    """None if a job ran out of memory or was refused."""
    job = bench.job(workload, steps, f"--batch-size {batch}")
    budget = bench.settings.batch_budget_bytes
    ran = bench.runner.gpushare([job] * copies, budget, accept=(0, FAILED, REFUSED))
    strange = [told for told in ran.failed if not of_memory(told)]
    if strange:
        raise NotMeasured("; ".join(strange))
    return None if ran.failed else ran


def of_memory(told: str) -> bool:
    """Whether a job is said to have failed for want of memory."""
    return "out of memory" in told or "refused" in told


def side_by_side(ran: Ran) -> bool:
    """Whether each had done its first step before one had ended: one that waits for the other's end does not count."""
    return max(ends[0] for ends in ran.ends_s) < min(ends[-1] for ends in ran.ends_s)


def at(bench: Bench, workload: str, batch: int, row: Row) -> None:
    """The figures of two copies with that batch, against one after the other."""
    more = f"--batch-size {batch}"
    solos = [bench.solo(workload, more)] * 2
    job = bench.lasting(workload, solos[0], more)
    ran = bench.runner.gpushare([job, job], bench.settings.batch_budget_bytes)
    pair.shared(bench, ran, solos, row)
    advance, stp = row.figures["advancing_together"], row.figures["stp"]
    bench.target(row, f"both advance in {LEAST_TOGETHER} of the time", advance >= LEAST_TOGETHER)
    bench.target(row, "as much as one after the other", stp >= 1)
