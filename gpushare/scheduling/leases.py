"""Who is promised memory before it needs it: under Waterwave a segment at a time (section 4.3)."""

from __future__ import annotations

from gpushare.native.doors import BY_CURVE, NO_LEASES
from gpushare.scheduling.policies import POLICIES, Policy
from gpushare.scheduling.snapshot import Snapshot


def segment_bytes(policy: Policy, snapshot: Snapshot) -> int:
    """What is allocated or freed in a segment that a lease is for, as `doors.split_set` takes it."""
    in_force = POLICIES[snapshot.mode] if snapshot.mode else policy
    if in_force is not POLICIES["waterwave"]:
        return NO_LEASES
    return snapshot.split_bytes or BY_CURVE
