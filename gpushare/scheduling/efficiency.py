"""How soon all is done, if as much is left of each job: what modes are compared by.

Solo seconds per second (STP) say how much is done now, but not for whom. A mode in which one job runs as if it were
alone and the other one hardly does no more than put the other one off: it will run alone in the end. On equal terms a
mode is better in which both advance.
"""

from __future__ import annotations

from collections.abc import Sequence

_LEAST_SHARE = 1e-9  # of all that is done: a job that stands still will run in the end


def efficiency(rates: Sequence[float]) -> float:
    """The time for one job after the other, over the time until all are done at these rates; 1 where nothing is gained.

    The jobs have the same solo time left. When the first of them has ended the rest go on in the same proportion. What
    they do together by then lies on the line from what all do now to the 1 of a job alone. Even rates give their sum;
    the less even they are, the closer to 1 is what comes out.

    :param rates: of each job, in solo seconds per second.
    """
    total = sum(rates)
    if total <= 0 or len(rates) < 2:
        return total
    fastest_first = sorted((max(rate, _LEAST_SHARE * total) for rate in rates), reverse=True)
    left, gain = sum(fastest_first), (total - 1) / (len(rates) - 1)
    time, done = (
        0.0,
        0.0,
    )  # in units of what each job has left; how long it would have taken at the rates of now
    for ended, rate in enumerate(fastest_first):
        together = 1 + gain * (len(rates) - ended - 1)
        time += (1 / rate - done) * left / together
        left, done = left - rate, 1 / rate
    return len(rates) / time
