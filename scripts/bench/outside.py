"""A run watched from outside, by its telemetry and by what the kernel says of the host's scheduler thread.

For what a summary can't tell, since it is of the whole run: how things stand while all jobs are there.
"""

import contextlib
import os
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from gpushare.scheduling.thread import OS_NAME
from gpushare.telemetry.reader import JobView, Telemetry

PROC = Path("/proc")
SETTLED_S = (
    6.0  # after the last profile: the first window of a mode, one of another, and what each has to settle
)


@dataclass(frozen=True)
class Sample:
    """The jobs in order of their accounts. `scheduler_s`: processor time that the scheduler thread has taken."""

    at_s: float
    scheduler_s: float
    iterations: tuple[int, ...]
    profiled: bool  # all jobs
    over: bool  # of one of them
    held_bytes: int
    longest_iteration_s: float  # of the last ones of all jobs, waits for memory apart


class Watched:
    """To be given to `run_gpushare` as `observe`: samples of the run from its jobs' beginning to its end."""

    def __init__(self, jobs: int, every_s: float = 0.2) -> None:
        self.samples: list[Sample] = []
        self.start_s = 0.0  # since when waits are told
        self._jobs, self._every_s = jobs, every_s

    def __call__(self, process: "subprocess.Popen[bytes]") -> None:
        telemetry, scheduler = None, None
        while process.poll() is None:
            telemetry = telemetry or _telemetry(process.pid)
            scheduler = scheduler or _scheduler(process.pid)
            if telemetry and scheduler and (found := self._sample(telemetry, scheduler)):
                self.samples.append(found)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(self._every_s)

    def _sample(self, telemetry: Telemetry, scheduler: Path) -> Sample | None:
        try:
            scheduler_s = int(scheduler.read_text().split()[0]) / 1e9
        except OSError:
            return None
        self.start_s = telemetry.pool().start_ns / 1e9
        jobs = [telemetry.job(account) for account in range(1, self._jobs + 1)]
        return Sample(
            time.monotonic(),
            scheduler_s,
            tuple(job.iterations for job in jobs),
            all(job.profiled for job in jobs),
            any(map(_is_over, jobs)),
            telemetry.pool().held_bytes,
            max(job.last_iteration_ns for job in jobs) / 1e9,
        )

    def steady(self, settled_s: float = 0.0) -> list[Sample]:
        """While all jobs are there and have a profile, but for the first `settled_s` of that; may be empty."""
        found = [s for s in self.samples if s.profiled and not s.over]
        return [s for s in found if s.at_s >= found[0].at_s + settled_s]


def scheduler_share(samples: Sequence[Sample]) -> float | None:
    """Of a core, from the first to the last one; None for fewer than two."""
    if len(samples) < 2:
        return None
    first, last = samples[0], samples[-1]
    return (last.scheduler_s - first.scheduler_s) / (last.at_s - first.at_s)


def _is_over(job: JobView) -> bool:
    return bool(job.end_ns)


def _telemetry(pid: int) -> Telemetry | None:
    """Of a `gpushare run` that has come so far as to make it."""
    with contextlib.suppress(OSError, ValueError):  # a ValueError: it is there, but has no size yet
        for link in (PROC / str(pid) / "fd").iterdir():
            if "memfd:gpushare-telemetry" in os.readlink(link):
                with link.open("rb") as file:
                    return Telemetry(file.fileno())
    return None


def _scheduler(pid: int) -> Path | None:
    """Where the kernel says how long the host's scheduler thread has computed."""
    with contextlib.suppress(OSError, psutil.NoSuchProcess):
        for host in psutil.Process(pid).children()[:1]:
            for task in (PROC / str(host.pid) / "task").iterdir():
                if (task / "comm").read_text().strip() == OS_NAME:
                    return task / "schedstat"
    return None
