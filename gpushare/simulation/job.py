"""What the simulator knows of a job: one measured iteration, and how often it comes."""

from __future__ import annotations

import random
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from gpushare.profiles import IterationKind, Profile
from gpushare.scheduling.snapshot import compress


@dataclass(frozen=True)
class Variation:
    """How an iteration differs from the measured one: factors on its bytes above the residue and on its time."""

    held: float = 1.0
    time: float = 1.0


AS_MEASURED = Variation()
_MOST_ITERATIONS, _MOST_EVENTS = 3000, 60_000


def as_measured(iteration: int) -> Variation:
    """Every iteration is the profiled one."""
    return AS_MEASURED


def first_kind(iteration: int) -> int:
    """Every iteration is of the first kind."""
    return 0


@dataclass(frozen=True)
class Shape:
    """An iteration: step i begins `time_s[i]` after its start and makes the job hold `held_bytes[i]`."""

    held_bytes: tuple[int, ...]
    time_s: tuple[float, ...]
    iteration_s: float


@dataclass(frozen=True)
class SimulatedJob:
    """Bytes in bytes, times in seconds.

    Step i of an iteration begins `time_s[i]` after its start and makes the job hold `held_bytes[i]`. At its
    end the job holds `residue_bytes`, as it does from its set-up on. `threads` is how many cores it keeps busy.
    With several `kinds` of iterations `kind_of` says which one the n-th is of; `held_bytes` is then the most of all.
    `has_profile`: its curve is known from the start; else it is measured in its first two iterations, alone.
    `fails_at`: the iteration, from 0, and the step in which it ends with an error, whatever it holds then.
    """

    name: str
    held_bytes: tuple[int, ...]
    time_s: tuple[float, ...]
    iteration_s: float
    residue_bytes: int
    iterations: int
    threads: float = 1.0
    arrival_s: float = 0.0
    vary: Callable[[int], Variation] = as_measured
    kinds: tuple[Shape, ...] = ()
    kind_of: Callable[[int], int] = first_kind
    priority: int = 0
    has_profile: bool = True
    fails_at: tuple[int, int] | None = None

    def shape(self, iteration: int) -> Shape:
        """Of the n-th iteration."""
        if not self.kinds:
            return Shape(self.held_bytes, self.time_s, self.iteration_s)
        return self.kinds[self.kind_of(iteration)]

    @property
    def peak_bytes(self) -> int:
        """The most that the profiled iteration holds."""
        return max((*self.held_bytes, self.residue_bytes))

    @cached_property
    def solo_s(self) -> float:
        """All iterations, with nobody beside."""
        return sum(self.vary(i).time * self.shape(i).iteration_s for i in range(self.iterations))

    @property
    def mean_iteration_s(self) -> float:
        """Of all iterations, with nobody beside."""
        return self.solo_s / self.iterations

    def until_all_kinds(self, most: int) -> int:
        """Iterations until each kind that comes among the first `most` has come."""
        if len(self.kinds) < 2:
            return 1
        order = [self.kind_of(n) for n in range(most)]
        return 1 + max(order.index(kind) for kind in set(order))


class Following:
    """Which kind of iteration comes when: each followed by the others as often as it was, evenly spread."""

    def __init__(self, kinds: Sequence[IterationKind]) -> None:
        seen = [kind.seen for kind in kinds]
        rows = [kind.followed_by if any(kind.followed_by) else seen for kind in kinds]
        self._shares = [[count / (sum(row) or 1) for count in row] for row in rows]
        self._due = [[0.0] * len(kinds) for _ in kinds]
        self._order = [0]

    def __call__(self, iteration: int) -> int:
        while len(self._order) <= iteration:
            self._order.append(self._next(self._order[-1]))
        return self._order[iteration]

    def _next(self, last: int) -> int:
        due = self._due[last]
        for kind, share in enumerate(self._shares[last]):
            due[kind] += share
        found = due.index(max(due))
        due[found] -= 1
        return found


class Wandering:
    """Iterations take longer by each of some factors equally often, in an order that is drawn once.

    Where all took the same time, jobs whose times are nearly multiples of each other would keep step for ever, and a
    little more or less of one of them would change what all do by a fifth. Real ones don't.

    :param seed: another order for each job, or iterations that are long for one would be so for all.
    """

    def __init__(self, factors: Sequence[float], *, seed: str) -> None:
        self._factors = tuple(factors)
        self._random = random.Random(seed)
        self._drawn: list[float] = []

    def __call__(self, iteration: int) -> Variation:
        while len(self._drawn) <= iteration:
            self._drawn += self._random.sample(self._factors, len(self._factors))
        return Variation(time=self._drawn[iteration])


def iterations_for(iteration_s: Sequence[float], longest: int) -> list[int]:
    """How many iterations of each job take the time that `longest` of the slowest one do; at most 3000."""
    target_s = longest * max(iteration_s)
    return [max(1, min(_MOST_ITERATIONS, round(target_s / max(s, 1e-9)))) for s in iteration_s]


def steps_for(iterations: Sequence[int], most_events: int = _MOST_EVENTS) -> int:
    """How finely to cut the curves so that a run has a bounded number of events."""
    return max(8, min(96, most_events // sum(iterations)))


def from_profile(
    profile: Profile,
    name: str,
    *,
    iterations: int,
    threads: float = 1.0,
    arrival_s: float = 0.0,
    priority: int = 0,
    steps: int = 96,
) -> SimulatedJob:
    """A job whose iterations are the profiled one, each as much longer as the profile's spread has it, or of the
    profile's kinds; curves cut to at most `steps` pieces."""
    residue_bytes, duration_s = profile.residue_bytes, profile.iteration_s
    curve = compress(profile.held_bytes, profile.time_s, residue_bytes, steps, duration_s=duration_s)
    return SimulatedJob(
        name=name,
        held_bytes=curve.held_bytes,
        time_s=curve.time_s,
        iteration_s=curve.duration_s,
        residue_bytes=residue_bytes,
        iterations=iterations,
        threads=threads,
        arrival_s=arrival_s,
        priority=priority,
        vary=Wandering(profile.spread, seed=name) if profile.spread and not profile.kinds else as_measured,
        kinds=tuple(_shape(kind, curve.ordinals) for kind in profile.kinds),
        kind_of=Following(profile.kinds) if profile.kinds else first_kind,
    )


def _shape(kind: IterationKind, ordinals: Sequence[int]) -> Shape:
    """The kind's curve, cut at the same allocations as that of all: claims are by these."""
    begins = [ordinal for ordinal in ordinals if ordinal < kind.allocations]
    ends = [*begins[1:], kind.allocations]
    held = [
        max(kind.held_bytes[bisect_right(kind.ordinals, begin) - 1 : bisect_left(kind.ordinals, end)])
        for begin, end in zip(begins, ends, strict=True)
    ]
    times_s = [_time_at(kind, begin) for begin in begins]
    return Shape(tuple(held), tuple(times_s), max(kind.iteration_s, times_s[-1]))


def _time_at(kind: IterationKind, ordinal: int) -> float:
    """When the allocation happens, as if those of a step were evenly spread."""
    step = bisect_right(kind.ordinals, ordinal) - 1
    ends = [*kind.ordinals[1:], kind.allocations], [*kind.time_s[1:], max(kind.iteration_s, kind.time_s[-1])]
    part = (ordinal - kind.ordinals[step]) / (ends[0][step] - kind.ordinals[step])
    return kind.time_s[step] + part * (ends[1][step] - kind.time_s[step])
