"""How far jobs have come, in solo time: what modes are measured by (`scheduling.meter`)."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from statistics import fmean

from gpushare.native import doors

_GROWN = 1.1
_LOOKS = 4
_DISTURBED = 0.8  # of the profiled time: less than that is no noise


@dataclass(frozen=True)
class Progress:
    """What a job has done past its profile: iterations, with a fraction, of `solo_s` seconds each when alone.

    `phase` is another one when the iterations have become others. `waits`: for other jobs, in whatever way. `now_s`:
    what one takes as they come now; 0 if that is not known.
    """

    iterations: float
    solo_s: float
    phase: tuple[int, ...] = ()
    waits: bool = False
    now_s: float = 0.0


Jobs = Mapping[int, Progress]  # by account


class Phases:
    """What phase jobs are in, told by the sizes that their iterations have come to have by then."""

    def __init__(self) -> None:
        self._began: dict[int, tuple[int, ...]] = {}

    def of(self, account: int, sizes: tuple[int, ...]) -> tuple[int, ...]:
        """Of a job with iterations of these sizes: another one when one of them has grown by a tenth.

        Times don't count: they change with the mode.
        """
        began = self._began.setdefault(account, sizes)
        if any(size > _GROWN * before for size, before in zip(sizes, began, strict=True)):
            self._began[account] = sizes
        return self._began[account]


class SoloTimes:
    """What an iteration of each job takes alone.

    That is the profiled one, which other jobs may have disturbed while they were setting up. No iteration is faster
    beside others than alone, so where those of its kind have come to be clearly shorter, that is what counts: the
    shortest mean of a few looks, since the shortest of many short iterations is far shorter than they are.
    """

    def __init__(self) -> None:
        self._shortest_ns: dict[int, float] = {}
        self._latest_ns: defaultdict[int, deque[int]] = defaultdict(partial(deque, maxlen=_LOOKS))

    def seconds(self, account: int, profiled_ns: int, now_ns: int) -> float:
        """Of one iteration.

        :param now_ns: of those of its kind as they come now; 0 if none has come yet.
        """
        if now_ns:
            self._note(account, now_ns)
        shortest_ns = self._shortest_ns.get(account, profiled_ns)
        return (shortest_ns if shortest_ns < _DISTURBED * profiled_ns else profiled_ns) / 1e9

    def _note(self, account: int, now_ns: int) -> None:
        latest_ns = self._latest_ns[account]
        were_enough = len(latest_ns) == _LOOKS
        latest_ns.append(now_ns)
        mean_ns = fmean(latest_ns)
        self._shortest_ns[account] = min(self._shortest_ns[account], mean_ns) if were_enough else mean_ns


class Measured:
    """The progress of all jobs as the shim has it, real or simulated."""

    def __init__(self) -> None:
        self._solo, self._phases = SoloTimes(), Phases()

    def of(self, account: int, told: doors.Progress) -> Progress:
        """Of one of them now."""
        solo_s = self._solo.seconds(account, told.solo_ns, told.now_ns)
        phase = self._phases.of(account, told.usual)
        return Progress(told.work, solo_s, phase, told.waits, told.now_ns / 1e9)
