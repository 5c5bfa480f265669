"""What a policy is."""

from __future__ import annotations

from typing import Protocol

from gpushare.scheduling.snapshot import Permit, Snapshot


class Policy(Protocol):
    """A pure function: the same snapshot gives the same permits.

    It runs in the scheduler thread, ahead of need, and never while a job waits for it. It keeps nothing
    and touches nothing. Its permits say when an iteration is worth starting, not when it is safe: every
    step passes the shim's safety check whatever a policy says.
    """

    def __call__(self, snapshot: Snapshot) -> list[Permit]:
        """Permits for each pair of jobs whose curves are known; a pair without one starts whenever that is safe."""
        ...
