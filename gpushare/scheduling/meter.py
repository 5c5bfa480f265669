"""How much work jobs do per second, and how evenly, in the mode that they run in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from gpushare.scheduling.efficiency import doubt, efficiency
from gpushare.scheduling.gaps import Gaps
from gpushare.scheduling.order import QUANTUM_S
from gpushare.scheduling.progress import Jobs

_WINDOW_S, _WINDOW_ITERATIONS = 2.0, 8
_EARLY_S, _EARLY_ITERATIONS = 0.25, 4  # from when on a clear case shows
_SETTLING_ITERATIONS = 2  # in which those of the mode before end


@dataclass(frozen=True)
class Reading:
    """Of a window: the efficiency (`scheduling.efficiency`), off by `doubt` at most, and solo seconds per second.

    `full`: it is long enough in any case. `rates`: of these, what each account did; `off`: how far each may be off.
    `stood`: that is as far as it is since some did next to nothing for a while, which modes don't make jobs do.
    """

    measured: float
    doubt: float
    full: bool
    stp: float
    rates: Mapping[int, float]
    off: Mapping[int, float]
    stood: bool = False


def mean(readings: Sequence[Reading]) -> Reading:
    """Of windows of one mode."""
    return Reading(
        fmean(reading.measured for reading in readings),
        fmean(reading.doubt for reading in readings),
        all(reading.full for reading in readings),
        fmean(reading.stp for reading in readings),
        {account: fmean(reading.rates[account] for reading in readings) for account in readings[0].rates},
        {account: fmean(reading.off[account] for reading in readings) for account in readings[0].off},
        any(reading.stood for reading in readings),
    )


Work = dict[int, float]  # solo seconds, by account


class Meter:
    """Counts the solo time of what each job does since a mode was taken, and in a window of it."""

    def __init__(self) -> None:
        self._iterations: dict[int, float] = {}
        self._solo_s = [0.0]
        self._work_s: Work = {}
        self._since: tuple[float, Work] = 0.0, {}  # when the mode came into force
        self._settles_s = 0.0  # from when on iterations are all of it, but for those that were under way
        self._begin: tuple[float, Work] | None = None  # of the window; None while the mode before ends
        self._gaps = Gaps()  # in the window
        self._turns = 0  # that are taken in the mode

    @property
    def jobs(self) -> int:
        """How many are measured."""
        return len(self._work_s)

    def trial_s(self, doubt: float, turns: int = 0) -> float:
        """How long it takes to measure another mode until it is in doubt by no more than that, or its window is full.

        :param doubt: 0 or less for a full window.
        :param turns: as for `switch`.
        """
        full_s = self._full_s
        clear_s = sum(self._solo_s) / 2 / doubt if doubt > 0 else full_s  # see `read`; of even rates
        settled_s = _SETTLING_ITERATIONS * max(self._solo_s)
        return settled_s + min(full_s, max(self._early_s(turns), clear_s))

    @property
    def _full_s(self) -> float:
        return max(_WINDOW_S, _WINDOW_ITERATIONS * max(self._solo_s))

    def _early_s(self, turns: int) -> float:
        """Before each job has had a turn nothing is known of a mode in which they take turns."""
        longest_s = max(self._solo_s)
        round_s = turns * max(QUANTUM_S, longest_s)
        return min(self._full_s, max(_EARLY_S, _EARLY_ITERATIONS * longest_s, round_s))

    def restart(self, jobs: Jobs) -> None:
        """These are the jobs from now on; a mode has to be taken next."""
        self._iterations = {account: job.iterations for account, job in jobs.items()}
        self._work_s = dict.fromkeys(jobs, 0.0)

    def count(self, now_s: float, jobs: Jobs) -> float:
        """What they have done since the last call; in solo seconds, of all."""
        before_s = sum(self._work_s.values())
        self._gaps.count(now_s, jobs)
        self._solo_s = [job.solo_s for job in jobs.values()]
        for account, job in jobs.items():
            # A wrong guess of what the open iteration is, is taken back at its end: no difference is dropped.
            self._work_s[account] += (job.iterations - self._iterations[account]) * job.solo_s
            self._iterations[account] = job.iterations
        return sum(self._work_s.values()) - before_s

    def switch(self, now_s: float, turns: int = 0) -> None:
        """Another mode is in force, in which so many turns are taken in a round: by each job, or group; 0 for none."""
        self._turns = turns
        self._since, self._begin, self._settles_s = (now_s, dict(self._work_s)), None, now_s

    def wait(self, now_s: float) -> None:
        """Not all jobs run as it wants them to yet."""
        self._begin, self._settles_s = None, now_s

    def begin_window(self, now_s: float) -> None:
        """Measure from here on."""
        self._begin = now_s, dict(self._work_s)
        self._gaps.restart(now_s)

    def read(self, now_s: float) -> Reading | None:
        """The window so far; None while it says nothing."""
        if self._begin is None:
            if now_s >= self._settles_s + _SETTLING_ITERATIONS * max(self._solo_s):
                self.begin_window(now_s)
            return None
        length_s = now_s - self._begin[0]
        if length_s < self._early_s(self._turns):
            return None
        rates = self._rates(now_s, self._begin)
        # Progress within an iteration is not even, and a gap may not come again soon.
        uneven_s = [solo_s / 2 for solo_s in self._solo_s]
        gaps_s = [self._gaps.longest_s(account) for account in self._work_s]
        off = [max(either) / length_s for either in zip(uneven_s, gaps_s, strict=True)]
        full = length_s >= self._full_s
        stood = any(gap_s > by_s for gap_s, by_s in zip(gaps_s, uneven_s, strict=True))
        rate_of, off_of = (dict(zip(self._work_s, of, strict=True)) for of in (rates, off))
        return Reading(efficiency(rates), doubt(rates, off), full, sum(rates), rate_of, off_of, stood)

    def lost_s(self, now_s: float, before: float | None) -> float:
        """Seconds that the mode in force has lost so far against one with this efficiency."""
        length_s = now_s - self._since[0]
        if not before or length_s <= 0:
            return 0.0
        return max(0.0, length_s * (1 - efficiency(self._rates(now_s, self._since)) / before))

    def _rates(self, now_s: float, since: tuple[float, Work]) -> list[float]:
        begin_s, before = since
        return [(work_s - before[account]) / (now_s - begin_s) for account, work_s in self._work_s.items()]
