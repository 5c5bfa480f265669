"""One job's iterations at a time; parameters stay resident (Salus's time-sharing)."""

from __future__ import annotations

from gpushare.scheduling.snapshot import Permit, Snapshot


def temporal(snapshot: Snapshot) -> list[Permit]:
    """Nobody starts beside anybody."""
    return [
        Permit(job.account, other.account, None, other.curve.duration_s if other.curve else 0.0)
        for job in snapshot.jobs
        for other in snapshot.jobs
        if job is not other
    ]
