"""The baseline: no doors, no waits. Above the budget there is an out-of-memory error at once."""

from __future__ import annotations

from gpushare.scheduling.snapshot import Permit, Snapshot


def unmanaged(snapshot: Snapshot) -> list[Permit]:
    """No permits: the shim opens every door."""
    return []
