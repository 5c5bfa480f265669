"""What a simulated run came to."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

OK, REFUSED, OUT_OF_MEMORY, FAILED = "ok", "refused", "out of memory", "failed"


@dataclass(frozen=True)
class JobOutcome:
    """One job. Times in seconds since the run began, waits in seconds.

    `status` is ok, refused (before its first iteration) or out of memory (later), with the figures in `message`, or
    failed (`SimulatedJob.fails_at`).
    `first_end_s` is the end of its first iteration. `work_s` is the solo time of what it did while all jobs were
    there (`Outcome.window_s`). `most_passed`: the most iterations that one other job began while this one waited at
    a door, not for the turn of a third one. `queued_s`: before it was begun (`scheduling.admission`).
    """

    name: str
    status: str
    message: str | None
    iterations: int
    arrival_s: float
    first_end_s: float | None
    end_s: float
    solo_s: float
    work_s: float
    queued_s: float
    door_wait_s: float
    memory_wait_s: float
    memory_waits: int
    longest_wait_s: float
    time_shift_s: float | None
    most_passed: int
    overruns: int
    copies_out: int

    @property
    def slowdown(self) -> float | None:
        """Time here over time alone; None unless it did all its iterations."""
        return (self.end_s - self.arrival_s) / self.solo_s if self.status == OK and self.solo_s else None

    @property
    def waits_s(self) -> float:
        """In the queue, at doors and for memory."""
        return self.queued_s + self.door_wait_s + self.memory_wait_s


@dataclass(frozen=True)
class Held:
    """From `time_s` on, job `index` held so many bytes."""

    time_s: float
    index: int
    held_bytes: int


@dataclass(frozen=True)
class Outcome:
    """A run of all jobs under one policy and budget.

    `window_s`: how long all jobs were there, from the last arrival to the first good end. A job that only waited
    was there too. `modes_s`: for how long two jobs or more ran in each mode, where the policy chooses among some.
    """

    policy: str
    budget_bytes: int
    duration_s: float
    window_s: float
    pool_peak_bytes: int
    headroom_bytes: int
    turns_s: float
    modes_s: dict[str, float]
    jobs: tuple[JobOutcome, ...]
    timeline: tuple[Held, ...]

    @property
    def stp(self) -> float:
        """System throughput, the sum of 1 / slowdown: solo seconds of work per second while all jobs were there.

        A job that did not end well adds nothing. One after the other, or in turns, is 1.
        """
        return sum(j.work_s for j in self.jobs if j.status == OK) / self.window_s if self.window_s else 0.0

    @property
    def antt(self) -> float | None:
        """Mean slowdown of the jobs that ended well."""
        slowdowns = [slowdown for job in self.jobs if (slowdown := job.slowdown)]
        return sum(slowdowns) / len(slowdowns) if slowdowns else None

    @property
    def over_serial(self) -> float | None:
        """Time of all over their time one after the other, without gaps; None unless all ended well."""
        serial_s = sum(job.solo_s for job in self.jobs)
        return self.duration_s / serial_s if self.all_ok and serial_s else None

    @property
    def all_ok(self) -> bool:
        """Whether every job did all its iterations."""
        return all(job.status == OK for job in self.jobs)

    @property
    def nothing_waits(self) -> bool:
        """Whether no job ever waited, at a door or for memory."""
        return self.all_ok and not any(job.waits_s for job in self.jobs)

    @property
    def all_run(self) -> bool:
        """Whether every job came to iterate before another had to end for it."""
        firsts = [job.first_end_s for job in self.jobs]
        ends = [job.end_s for job in self.jobs]
        return self.all_ok and all(f is not None and f <= min(ends) for f in firsts)

    def to_json(self) -> dict[str, Any]:
        """All figures; bytes and seconds, None for what is not known."""
        fields = asdict(self)
        fields["timeline"] = [[h.time_s, h.index, h.held_bytes] for h in self.timeline]
        fields["jobs"] = [{**asdict(job), "slowdown": job.slowdown} for job in self.jobs]
        figures = {"stp": self.stp, "antt": self.antt, "over_serial": self.over_serial}
        return {**fields, **figures, "all_ok": self.all_ok, "nothing_waits": self.nothing_waits}
