"""Policies: pure functions from a snapshot to permits."""

from __future__ import annotations

from gpushare.scheduling.policies.base import Policy
from gpushare.scheduling.policies.temporal import temporal
from gpushare.scheduling.policies.unmanaged import unmanaged
from gpushare.scheduling.policies.waterwave import waterwave
from gpushare.scheduling.policies.zico import zico

POLICIES: dict[str, Policy] = {
    "unmanaged": unmanaged,
    "temporal": temporal,
    "zico": zico,
    "waterwave": waterwave,
}

# Those whose jobs may also take turns, where that is faster (`scheduling.pace`).
SHARING = frozenset({"zico", "waterwave"})

__all__ = ["POLICIES", "SHARING", "Policy"]
