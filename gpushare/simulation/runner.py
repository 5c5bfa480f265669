"""A simulated job under way."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from gpushare.scheduling.admission import Need
from gpushare.simulation.job import Shape, SimulatedJob, Variation
from gpushare.simulation.outcome import OK


class State(Enum):
    """Where a job is between two events."""

    AWAY = "not there yet"
    QUEUED = "not begun yet"
    COMPUTING = "computing"
    WAITING = "waiting"
    OVER = "over"


class Place(Enum):
    """What a job asks for next."""

    SET_UP = "set-up"
    DOOR = "door"
    STEP = "step"


@dataclass
class Runner:
    """The job, what it does now, and what it has done. Times in seconds."""

    job: SimulatedJob
    index: int
    rank: int  # in the queue
    left_s: float  # of solo work until the next thing it asks for
    account: int = 0  # none before it is begun
    came: int = 0  # how many had come before it
    state: State = State.AWAY
    place: Place = Place.SET_UP
    step: int = 0
    iterations: int = 0
    shape: Shape = field(init=False)
    varied: Variation = field(default_factory=Variation)
    waiting_since_s: float = 0.0
    queued_s: float = 0.0
    longest_wait_s: float = 0.0
    first_end_s: float | None = None
    done_s: float = 0.0  # of solo work
    end_s: float = 0.0
    status: str = OK
    message: str | None = None

    def __post_init__(self) -> None:
        self.shape = self.job.shape(0)

    @property
    def standing(self) -> tuple[int, int]:
        """In the queue (`scheduling.admission.Entrant`)."""
        return self.rank, self.came

    @property
    def need(self) -> Need | None:
        """By its saved profile."""
        return Need(self.job.residue_bytes, self.job.peak_bytes) if self.job.has_profile else None

    def waited(self, now_s: float) -> float:
        """Seconds of the wait that ends now, which is noted."""
        waited_s = now_s - self.waiting_since_s
        self.longest_wait_s = max(self.longest_wait_s, waited_s)
        return waited_s

    def begin(self) -> None:
        """The next iteration."""
        self.shape, self.varied = self.job.shape(self.iterations), self.job.vary(self.iterations)

    def held_at(self, step: int) -> int:
        """Bytes that this iteration holds from this step on."""
        held, residue = self.shape.held_bytes[step], self.job.residue_bytes
        return residue + round((held - residue) * self.varied.held) if held > residue else held

    def work_before(self, step: int) -> float:
        """Seconds from step - 1, or the start of the iteration, to `step`, or its end."""
        times = self.shape.time_s
        end = times[step] if step < len(times) else self.shape.iteration_s
        return max(0.0, end - (times[step - 1] if step else 0.0)) * self.varied.time
