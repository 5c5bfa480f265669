"""What became of the jobs, and the exit code that says so."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

OK, JOB_FAILED, USAGE, REFUSED, HOST_DIED = 0, 1, 2, 3, 4


@dataclass
class JobResult:
    """One job. `status`: waiting, running, ok, failed, refused, interrupted, profiled, lost or
    crashed: it ended the host, and those that were lost with it."""

    name: str
    command: str
    status: str = "waiting"
    exit_code: int | None = None
    message: str | None = None
    account: int | None = None


def exit_code(results: Sequence[JobResult], *, ended_by: int | None, host_died: bool) -> int:
    """Of the whole run: a signal before a dead host before a refusal before a failure."""
    if ended_by:
        return 128 + ended_by
    if host_died:
        return HOST_DIED
    if any(r.status == "refused" for r in results):
        return REFUSED
    if any(r.status not in ("ok", "profiled") for r in results):
        return JOB_FAILED
    return OK
