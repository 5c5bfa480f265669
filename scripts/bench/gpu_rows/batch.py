"""The largest batch of two copies together, over the largest of one alone in the same budget C.

Two copies need at least C less both residues for what one iteration needs beyond its own, one alone C less one:
the bound is the ratio of these. At the largest batch of both the figures of a pair are taken.
"""

from collections.abc import Callable
from dataclasses import dataclass

from . import pair
from .bench import Bench
from .row import NotMeasured, Row
from .running import Ran

WHAT = "the largest batch of two copies together over the largest alone, in one budget"
TARGET = 0.95  # of the bound
LEAST_TOGETHER = 0.2
ALONE_STEPS, TOGETHER_STEPS = 6, 20  # the profile, and some more beside each other
FAILED, REFUSED = 1, 3


@dataclass
class Search:
    """For the largest size that fits: `fitting` does (0: none is known to), `failing` does not, or may not be tried."""

    fits: Callable[[int], bool]
    fitting: int = 0
    failing: int | None = None

    def to(self, guess: int, grain: int) -> "Search":
        """To a `grain`th of it, by doubling and bisection."""
        size = guess
        while self.failing is None or self.failing - self.fitting > max(1, self.fitting // grain):
            self.look(size)
            size = 2 * size if self.failing is None else (self.fitting + self.failing) // 2
        return self

    def look(self, size: int) -> None:
        if self.fits(size):
            self.fitting = size
        else:
            self.failing = size

    @property
    def most(self) -> int:
        """What the largest can still be."""
        assert self.failing is not None
        return self.failing - 1

    @property
    def doubt(self) -> float:
        """How far it can be off, as a part of it."""
        return (self.most - self.fitting) / max(1, self.fitting)


def ratios(one: Search, two: Search) -> tuple[float, float]:
    """The least and the most that the ratio of the largest can be; two fit no batch that one does not."""
    return two.fitting / max(1, one.most), min(1.0, two.most / max(1, one.fitting))


def decide(one: Search, two: Search, least: float) -> bool:
    """Look more closely, where it is least known, until it is known whether the ratio is `least` at least."""
    while True:
        low, high = ratios(one, two)
        if low >= least or high < least:
            return low >= least
        wider = max(one, two, key=lambda search: search.doubt)
        wider.look((wider.fitting + wider.most + 1) // 2)


def measure(bench: Bench, workload: str, guess: int, row: Row) -> None:
    budget, grain = bench.settings.batch_budget_bytes, bench.settings.batch_grain
    residues: dict[int, int | None] = {}

    def alone(batch: int) -> bool:
        ran = run(bench, workload, 1, batch, ALONE_STEPS)
        residues[batch] = ran.residue_bytes if ran else None
        known("largest_alone", batch * (ran is not None))
        return ran is not None

    def together(batch: int) -> bool:
        ran = run(bench, workload, 2, batch, TOGETHER_STEPS)
        fits = ran is not None and side_by_side(ran)
        one.fitting = max(one.fitting, batch * fits)
        known("largest_together", batch * fits)
        return fits

    def known(figure: str, fitting: int) -> None:
        if fitting:
            row.figures[figure] = max(int(row.figures.get(figure, 0)), fitting)

    one = Search(alone).to(guess, grain)
    row.figures |= {"budget_bytes": budget, "largest_alone": one.fitting}
    residue = residues.get(one.fitting)
    if residue is None:
        raise NotMeasured("not even a batch of 1 ran alone" if not one.fitting else "no profile was kept")
    bound = max(0.0, (budget - 2 * residue) / (budget - residue))
    row.figures |= {"residue_bytes": residue, "bound": bound}
    two = Search(together, 0, one.failing).to(max(1, int(bound * one.fitting)), grain)
    note(one, two, row)

    def compare() -> None:
        row.claims[f"two copies reach {TARGET} of the bound"] = decide(one, two, TARGET * bound)

    row.part(f"whether they reach {TARGET} of the bound", compare)
    note(one, two, row)
    if two.fitting:
        row.part("at the largest batch", lambda: at(bench, workload, two.fitting, row))


def note(one: Search, two: Search, row: Row) -> None:
    low, high = ratios(one, two)
    row.figures |= {"largest_alone": one.fitting, "largest_together": two.fitting}
    row.figures |= {"ratio": two.fitting / one.fitting, "ratio_at_least": low, "ratio_at_most": high}


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
