"""What the ends of the steps of jobs say, on one clock; the first steps of each job are left out.

Solo times are a job's seconds per step by itself. STP is the solo time of what all jobs did while all of them ran, over
that time: 1 for one after the other. ANTT is the mean, over the jobs, of that time over the job's own part of it.
"""

from dataclasses import dataclass
from statistics import mean

from threads import progress

from .row import NotMeasured


@dataclass(frozen=True)
class Together:
    """`window_s`: from when the last job is past its first steps to when the first one ends. Steps in it, by job."""

    window_s: float
    steps: list[float]

    def stp(self, solo_step_s: list[float]) -> float:
        return sum(n * s for n, s in zip(self.steps, solo_step_s, strict=True)) / self.window_s

    def antt(self, solo_step_s: list[float]) -> float:
        return mean(self.window_s / (n * s) for n, s in zip(self.steps, solo_step_s, strict=True))


def step_s(ends_s: list[float], few: int) -> float:
    """Seconds of a step, past the first ones.

    :raises NotMeasured: there are no more.
    """
    if len(ends_s) <= few:
        raise NotMeasured(f"it did {len(ends_s)} steps, and the first {few} do not count")
    return (ends_s[-1] - ends_s[few - 1]) / (len(ends_s) - few)


def together(ends_s: list[list[float]], few: int) -> Together:
    """What jobs did while all of them ran.

    :raises NotMeasured: one had ended before another was past its first steps.
    """
    if min(map(len, ends_s)) < few:
        raise NotMeasured(f"a job did fewer than {few} steps")
    begin, end = max(e[few - 1] for e in ends_s), min(e[-1] for e in ends_s)
    if end <= begin:
        raise NotMeasured(f"one had ended before another had done {few} steps: they did not run side by side")
    return Together(end - begin, [progress(e, end) - progress(e, begin) for e in ends_s])
