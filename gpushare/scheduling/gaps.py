"""For how long jobs do next to nothing, of their own accord: they start workers, validate, wait for data."""

from __future__ import annotations

from gpushare.scheduling.progress import Jobs, Progress

_STANDS = 0.05  # of the pace alone; jobs that contend with each other are faster


class _Gap:
    """Of one job: the one that is open, if it is one, and the longest of those before."""

    def __init__(self, now_s: float, done: float) -> None:
        self.since_s, self.done = now_s, done
        self.longest_s = 0.0

    def count(self, now_s: float, job: Progress) -> None:
        length_s = now_s - self.since_s
        goes_on = (job.iterations - self.done) * job.solo_s < _STANDS * length_s
        if goes_on and not job.waits:
            self.longest_s = max(self.longest_s, length_s)
        else:
            self.since_s, self.done = now_s, job.iterations


class Gaps:
    """Of all jobs in a window, so far."""

    def __init__(self) -> None:
        self._jobs: Jobs = {}
        self._gaps: dict[int, _Gap] = {}

    def restart(self, now_s: float) -> None:
        """A window begins."""
        self._gaps = {account: _Gap(now_s, job.iterations) for account, job in self._jobs.items()}

    def count(self, now_s: float, jobs: Jobs) -> None:
        """What they have done by now."""
        self._jobs = jobs
        for account, job in jobs.items():
            self._gaps.setdefault(account, _Gap(now_s, job.iterations)).count(now_s, job)

    def longest_s(self, account: int) -> float:
        """Of this job; 0 for what may be a part of any iteration, as slow as they are now, or was a wait."""
        job = self._jobs[account]
        return max(0.0, self._gaps[account].longest_s - max(job.solo_s, job.now_s))
