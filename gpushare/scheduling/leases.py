"""Who is promised memory before it needs it: in Waterwave's rounds, a segment at a time (section 4.3).

Where starts are as early as they fit, another iteration needs what a promise would keep from it.
"""

from __future__ import annotations

from collections.abc import Iterable

from gpushare.native.doors import BY_CURVE, NO_LEASES
from gpushare.scheduling.policies import OF_MODE, POLICIES, Policy
from gpushare.scheduling.snapshot import Permit, Snapshot


def segment_bytes(policy: Policy, snapshot: Snapshot, permits: Iterable[Permit]) -> int:
    """What is allocated or freed in a segment that a lease is for, as `doors.split_set` takes it.

    :param permits: of the policy, for this snapshot.
    """
    in_force = OF_MODE[snapshot.mode] if snapshot.mode else policy
    in_rounds = any(permit.allocations for permit in permits)
    if in_force is not POLICIES["waterwave"] or not in_rounds:
        return NO_LEASES
    return snapshot.split_bytes or BY_CURVE
