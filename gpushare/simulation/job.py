"""What the simulator knows of a job: one measured iteration, and how often it comes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from gpushare.profiles import Profile
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


@dataclass(frozen=True)
class SimulatedJob:
    """Bytes in bytes, times in seconds.

    Step i of an iteration begins `time_s[i]` after its start and makes the job hold `held_bytes[i]`. At its
    end the job holds `residue_bytes`, as it does from its set-up on. `threads` is how many cores it keeps busy.
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

    @property
    def peak_bytes(self) -> int:
        """The most that the profiled iteration holds."""
        return max((*self.held_bytes, self.residue_bytes))

    @property
    def solo_s(self) -> float:
        """All iterations, with nobody beside."""
        return sum(self.vary(i).time for i in range(self.iterations)) * self.iteration_s


def iterations_for(iteration_s: Sequence[float], longest: int) -> list[int]:
    """How many iterations of each job take the time that `longest` of the slowest one do; at most 3000."""
    target_s = longest * max(iteration_s)
    return [max(1, min(_MOST_ITERATIONS, round(target_s / max(s, 1e-9)))) for s in iteration_s]


def steps_for(iterations: Sequence[int]) -> int:
    """How finely to cut the curves so that a run has a bounded number of events."""
    return max(8, min(96, _MOST_EVENTS // sum(iterations)))


def from_profile(
    profile: Profile,
    name: str,
    *,
    iterations: int,
    threads: float = 1.0,
    arrival_s: float = 0.0,
    steps: int = 96,
) -> SimulatedJob:
    """A job whose iterations are the profiled one, its curve cut to at most `steps` pieces."""
    curve = compress(profile.held_bytes, profile.time_s, profile.residue_bytes, steps)
    return SimulatedJob(
        name=name,
        held_bytes=curve.held_bytes,
        time_s=curve.time_s,
        iteration_s=max(profile.iteration_s, curve.duration_s),
        residue_bytes=profile.residue_bytes,
        iterations=iterations,
        threads=threads,
        arrival_s=arrival_s,
    )
