"""What a simulated run is told by: what each job held and when, and what came of it."""

from __future__ import annotations

from collections.abc import Sequence

from gpushare.native.simulation import NOTHING_YET, SimulatedGovernor
from gpushare.simulation.outcome import OK, Held, JobOutcome
from gpushare.simulation.runner import Runner


class Record:
    """Of these jobs, by their indices.

    `held`: bytes of each now; `peak_bytes`: of all together at most. `timeline` stays empty unless `timed`.
    """

    def __init__(self, jobs: int, *, timed: bool) -> None:
        self.held = [0] * jobs
        self.peak_bytes = 0
        self.timeline: list[Held] = []
        self._timed = timed
        nothing = [0.0] * jobs
        self._window_begin, self._window_end = (0.0, nothing), (0.0, nothing)

    def note_held(self, now_s: float, index: int, held_bytes: int) -> None:
        """The job holds so much from now on."""
        if held_bytes == self.held[index]:
            return
        self.held[index] = held_bytes
        if self._timed:
            self.timeline.append(Held(now_s, index, held_bytes))
        self.peak_bytes = max(self.peak_bytes, sum(self.held))

    def note_arrival(self, now_s: float, runners: Sequence[Runner]) -> None:
        """A job is there: the window in which all are begins with the last one, if none has ended by then."""
        if not self._window_end[0]:
            self._window_begin = now_s, [r.done_s for r in runners]

    def note_end(self, now_s: float, status: str, runners: Sequence[Runner]) -> None:
        """A job is over: the window ends with the first one that ended well."""
        if status == OK and not self._window_end[0]:
            self._window_end = now_s, [r.done_s for r in runners]

    @property
    def window_s(self) -> float:
        """See `Outcome`; nought if no job ended well."""
        return max(0.0, self._window_end[0] - self._window_begin[0])

    def outcome(self, runner: Runner, governor: SimulatedGovernor) -> JobOutcome:
        """Of a job, so far."""
        job = governor.job(runner.account) if runner.account else NOTHING_YET
        return JobOutcome(
            name=runner.job.name,
            status=runner.status,
            message=runner.message,
            iterations=runner.iterations,
            arrival_s=runner.job.arrival_s,
            first_end_s=runner.first_end_s,
            end_s=runner.end_s,
            solo_s=runner.job.solo_s,
            queued_s=runner.queued_s,
            work_s=self._window_end[1][runner.index] - self._window_begin[1][runner.index],
            door_wait_s=job.door_wait_ns / 1e9,
            memory_wait_s=job.memory_wait_ns / 1e9,
            memory_waits=job.memory_waits,
            longest_wait_s=runner.longest_wait_s,
            time_shift_s=job.shift_sum_ns / job.shift_count / 1e9 if job.shift_count else None,
            most_passed=job.most_passed,
            overruns=job.overruns,
            copies_out=job.copies_out,
        )
