"""All that is decided before a run starts, and how the host is told."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gpushare.jobs import JobSpec
from gpushare.launcher.devices import CPU, Device
from gpushare.profiles import Profile
from gpushare.telemetry import allocation_log

PAGE_BYTES = 2 << 20
# The same whatever the budget is, so that a job holds in a tight budget what it held in an ample one. Blocks of half of
# it and more are extents (`heap.h`).
REGION_BYTES = 64 << 20


@dataclass(frozen=True)
class RunPlan:
    """All that is decided before anything starts."""

    jobs: Sequence[JobSpec]
    profiles: Sequence[Profile | None]
    budget_bytes: int
    policy: str
    mode: str = "run"
    order: str = "fifo"
    split_bytes: int | None = None
    explain: bool = False
    debug_memory: bool = False
    device: Device = CPU
    give_input: bool = True  # stdin, to a job that is alone
    shared_packages: Sequence[str] = ()  # one copy for all jobs
    open_files: int | None = None  # the limit that scripts see, where it was raised (`launcher.open_files`)

    def log_header(self) -> bytes:
        """First line of a log of its allocations."""
        return allocation_log.header(
            [(job.name, job.command) for job in self.jobs],
            policy=self.policy,
            device=self.device.label,
            budget_bytes=self.budget_bytes,
            page_bytes=PAGE_BYTES,
            region_bytes=REGION_BYTES,
        )

    def start_message(
        self, jobs: list[dict[str, Any]], *, telemetry_fd: int, log_fd: int, decisions_fd: int
    ) -> dict[str, Any]:
        """The host's first one. `jobs` are `job_message`s; -1 as a descriptor is none."""
        return {
            "op": "start",
            "mode": self.mode,
            "policy": self.policy,
            "order": self.order,
            "split_bytes": self.split_bytes,
            "budget_bytes": self.budget_bytes,
            "page_bytes": PAGE_BYTES,
            "region_bytes": REGION_BYTES,
            "telemetry_fd": telemetry_fd,
            "log_fd": log_fd,
            "decisions_fd": decisions_fd,
            "debug_memory": self.debug_memory,
            "shared_packages": list(self.shared_packages),
            "open_files": self.open_files,
            "parent_pid": os.getpid(),
            "device": self.device.label,
            "jobs": jobs,
        }

    def job_message(self, index: int, ends: dict[str, int], log_fd: int) -> dict[str, Any]:
        """A job, for the first message. `ends` are the descriptors of what it writes ("out", "err"), `log_fd` the file
        of its profiled iteration's allocations."""
        job, profile = self.jobs[index], self.profiles[index]
        return {
            "name": job.name,
            "kind": job.kind,
            "target": job.target,
            "args": list(job.args),
            "cwd": str(job.cwd),
            "env": job.env,
            "priority": job.priority,
            "stdout_fd": ends["out"],
            "stderr_fd": ends["err"],
            "stdin": self.gives_input,
            "profiled_log_fd": log_fd,
            "profile": profile.to_json() if profile else None,
            "solo_s": profile.solo_s if profile else None,
        }

    @property
    def gives_input(self) -> bool:
        """Whether a job reads our standard input: one that is alone does."""
        return self.give_input and len(self.jobs) == 1
