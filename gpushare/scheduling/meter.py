"""How much work jobs do per second, and how evenly, in the mode that they run in."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from gpushare.scheduling.efficiency import doubt, efficiency

_WINDOW_S, _WINDOW_ITERATIONS = 2.0, 8
_EARLY_S, _EARLY_ITERATIONS = 0.25, 4  # from when on a clear case shows
_SETTLING_ITERATIONS = 2  # in which those of the mode before end


_PHASE = math.log(1.1)
_DISTURBED = 0.8  # of the profiled time: less than that is no noise


def phase(held_bytes: Sequence[int]) -> tuple[int, ...]:
    """The phase of a job with this curve: another one when its peak or its allocations have grown by a tenth.

    Times don't count: they change with the mode.
    """
    sizes = max(held_bytes, default=0), len(held_bytes)
    return tuple(round(math.log(size) / _PHASE) if size else 0 for size in sizes)


class SoloTimes:
    """What an iteration of each job takes alone.

    That is the profiled one, which other jobs may have disturbed while they were setting up. No iteration is faster
    beside others than alone, so where the measured curve has come to be clearly shorter, it is what counts.
    """

    def __init__(self) -> None:
        self._shortest_ns: dict[int, int] = {}

    def note(self, account: int, time_ns: Sequence[int], duration_ns: int) -> None:
        """The times of the job's curve now, and its end: there may be work after its last allocation."""
        if time_ns:
            now_ns = max(time_ns[-1], duration_ns)
            self._shortest_ns[account] = min(now_ns, self._shortest_ns.get(account, now_ns))

    def seconds(self, account: int, profiled_ns: int) -> float:
        """Of one iteration."""
        shortest_ns = self._shortest_ns.get(account, profiled_ns)
        return (shortest_ns if 0 < shortest_ns < _DISTURBED * profiled_ns else profiled_ns) / 1e9


@dataclass(frozen=True)
class Progress:
    """What a job has done past its profile: iterations, with a fraction, of `solo_s` seconds each when alone.

    `phase` is another one when the iterations have become others.
    """

    iterations: float
    solo_s: float
    phase: tuple[int, ...] = ()


Jobs = Mapping[int, Progress]  # by account


@dataclass(frozen=True)
class Reading:
    """Of a window: the efficiency (`scheduling.efficiency`), off by `doubt` at most, and solo seconds per second.

    `full`: it is long enough in any case. `rates`: of these, what each account did; `off`: how far each may be off.
    """

    measured: float
    doubt: float
    full: bool
    stp: float
    rates: Mapping[int, float]
    off: Mapping[int, float]


def mean(readings: Sequence[Reading]) -> Reading:
    """Of windows of one mode."""
    return Reading(
        fmean(reading.measured for reading in readings),
        fmean(reading.doubt for reading in readings),
        all(reading.full for reading in readings),
        fmean(reading.stp for reading in readings),
        {account: fmean(reading.rates[account] for reading in readings) for account in readings[0].rates},
        {account: fmean(reading.off[account] for reading in readings) for account in readings[0].off},
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

    def trial_s(self, doubt: float) -> float:
        """How long it takes to measure another mode until it is in doubt by no more than that, or its window is full.

        :param doubt: 0 or less for a full window.
        """
        longest_s = max(self._solo_s)
        full_s = max(_WINDOW_S, _WINDOW_ITERATIONS * longest_s)
        clear_s = sum(self._solo_s) / 2 / doubt if doubt > 0 else full_s  # see `read`; of even rates
        early_s = max(_EARLY_S, _EARLY_ITERATIONS * longest_s)
        return _SETTLING_ITERATIONS * longest_s + min(full_s, max(early_s, clear_s))

    def restart(self, jobs: Jobs) -> None:
        """These are the jobs from now on; a mode has to be taken next."""
        self._iterations = {account: job.iterations for account, job in jobs.items()}
        self._work_s = dict.fromkeys(jobs, 0.0)

    def count(self, jobs: Jobs) -> None:
        """What they have done since the last call."""
        self._solo_s = [job.solo_s for job in jobs.values()]
        for account, job in jobs.items():
            # A wrong guess of what the open iteration is, is taken back at its end: no difference is dropped.
            self._work_s[account] += (job.iterations - self._iterations[account]) * job.solo_s
            self._iterations[account] = job.iterations

    def switch(self, now_s: float) -> None:
        """Another mode is in force."""
        self._since, self._begin, self._settles_s = (now_s, dict(self._work_s)), None, now_s

    def wait(self, now_s: float) -> None:
        """Not all jobs run as it wants them to yet."""
        self._begin, self._settles_s = None, now_s

    def begin_window(self, now_s: float) -> None:
        """Measure from here on."""
        self._begin = now_s, dict(self._work_s)

    def read(self, now_s: float) -> Reading | None:
        """The window so far; None while it says nothing."""
        longest_s = max(self._solo_s)
        if self._begin is None:
            if now_s >= self._settles_s + _SETTLING_ITERATIONS * longest_s:
                self.begin_window(now_s)
            return None
        length_s = now_s - self._begin[0]
        if length_s < max(_EARLY_S, _EARLY_ITERATIONS * longest_s):
            return None
        rates = self._rates(now_s, self._begin)
        off = [solo_s / 2 / length_s for solo_s in self._solo_s]  # progress within an iteration is not even
        full = length_s >= max(_WINDOW_S, _WINDOW_ITERATIONS * longest_s)
        by_account = (dict(zip(self._work_s, of, strict=True)) for of in (rates, off))
        return Reading(efficiency(rates), doubt(rates, off), full, sum(rates), *by_account)

    def lost_s(self, now_s: float, before: float | None) -> float:
        """Seconds that the mode in force has lost so far against one with this efficiency."""
        length_s = now_s - self._since[0]
        if not before or length_s <= 0:
            return 0.0
        return max(0.0, length_s * (1 - efficiency(self._rates(now_s, self._since)) / before))

    def _rates(self, now_s: float, since: tuple[float, Work]) -> list[float]:
        begin_s, before = since
        return [(work_s - before[account]) / (now_s - begin_s) for account, work_s in self._work_s.items()]
