"""How long the rules let a job of a simulated run wait at most, at its door or for memory, or to be begun.

First in first out, while a job waits each other one may end the iteration that it is in and begin one more; where they
take turns it goes on until its quantum is over, and ends the iteration that it is in then. Which of the two holds may
change meanwhile, with a mode or a permit. Under the other orders some go first (`AHEAD`), and then the same holds:

- `fair`: who was granted less goes first until it has caught up. A newcomer begins at the least that another one has,
  so nobody is further ahead of another one than by what it was granted itself. While it has an iteration open each
  catches up by a sixteenth of the budget at least, times the time; and it need not go on for longer than to its end.
- `priority`: those of higher priority, to their ends. Who has the highest waits as first in first out.
- `srtf`: those that have less left to do, to their ends. Who has more begins nothing while another one waits, but may
  come to have less by the iteration that it is in.
- `UNTIL_THEY_END`: a job whose memory was copied out stays away until the others leave it room, and one that does not
  fit beside what the others keep, since the budget was cut, or is queued before it begins, waits for that; so may any
  other one for these. As ranks that change all the time do, that promises no more than that somebody always computes.

These follow from the rules of openings.cpp as they are written; what is left out is how long it takes to see that all
wait (30 ms), each time that something is copied out.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from gpushare.jobs import FAIR, FIFO, PRIORITY, SRTF
from gpushare.simulation import Contention, JobOutcome, SimulatedJob

LEAST_SHARE = 16  # of the budget, that an open iteration counts for at least (openings.cpp)
UNTIL_THEY_END = "until they end"


@dataclass(frozen=True)
class Ran:
    """A job, what came of it, and its least pace: that beside all others."""

    job: SimulatedJob
    outcome: JobOutcome
    pace: float

    def seconds(self, first: int = 0) -> float:
        """All iterations from the `first` on, and all that the job waited for memory."""
        times = (self.job.vary(n).time for n in range(first, self.job.iterations))
        return sum(times) * self.job.iteration_s / self.pace + self.outcome.memory_wait_s

    @property
    def slowest_s(self) -> float:
        """The same for its longest iteration."""
        longest = max(self.job.vary(n).time for n in range(self.job.iterations))
        return longest * self.job.iteration_s / self.pace + self.outcome.memory_wait_s


def largest_rise(job: SimulatedJob) -> float:
    """The most that an iteration of the job holds beyond its residue, in bytes, whatever its curve claims."""
    most = max(job.vary(n).held for n in range(job.iterations))
    return most * (job.peak_bytes - job.residue_bytes)


Budgets = tuple[int, int]  # the least and the most there was, in bytes
Ahead = Callable[[Ran, Ran, Budgets], float]


def _nothing(waits: Ran, other: Ran, budgets: Budgets) -> float:
    return 0.0


def _catches_up(waits: Ran, other: Ran, budgets: Budgets) -> float:
    least, most = budgets
    granted = waits.seconds() * max(most / LEAST_SHARE, largest_rise(waits.job))
    return min(other.seconds(), granted / (least / LEAST_SHARE))


def _of_higher_priority(waits: Ran, other: Ran, budgets: Budgets) -> float:
    return other.seconds() if other.job.priority > waits.job.priority else 0.0


def _has_less_left(waits: Ran, other: Ran, budgets: Budgets) -> float:
    mean_s = other.job.mean_iteration_s
    may = round(waits.job.solo_s / mean_s) + 2  # ranks lag an iteration behind, and are rounded
    return other.seconds(max(0, other.job.iterations - may))


def _all(waits: Ran, other: Ran, budgets: Budgets) -> float:
    return other.seconds()


AHEAD: dict[str, Ahead] = {
    FIFO: _nothing,
    FAIR: _catches_up,
    SRTF: _has_less_left,
    PRIORITY: _of_higher_priority,
    UNTIL_THEY_END: _all,
}


def bounds_s(
    jobs: Sequence[SimulatedJob],
    outcomes: Sequence[JobOutcome],
    contention: Contention,
    *,
    ahead: str,
    quantum_s: float,
    budgets: Budgets,
    iterations: int = 2,
) -> list[float]:
    """Of each job, in seconds.

    :param ahead: one of `AHEAD`.
    :param iterations: of each other one, beside those that go first: 1 if all take turns from beginning to end.
    """
    threads = [job.threads for job in jobs]
    ran = [
        Ran(job, outcome, contention.pace(i, range(len(jobs)), threads))
        for i, (job, outcome) in enumerate(zip(jobs, outcomes, strict=True))
    ]

    def one_s(waits: Ran, other: Ran) -> float:
        return quantum_s + iterations * other.slowest_s + AHEAD[ahead](waits, other, budgets)

    return [sum(one_s(one, other) for other in ran if other is not one) for one in ran]
