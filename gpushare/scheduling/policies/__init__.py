"""Policies: pure functions from a snapshot to permits."""

from __future__ import annotations

from collections.abc import Collection

from gpushare.jobs import FAIR
from gpushare.scheduling.policies.auto import AUTO_MODES, auto
from gpushare.scheduling.policies.base import Policy
from gpushare.scheduling.policies.greedy import greedy
from gpushare.scheduling.policies.temporal import temporal
from gpushare.scheduling.policies.unmanaged import unmanaged
from gpushare.scheduling.policies.waterwave import waterwave
from gpushare.scheduling.policies.zico import zico
from gpushare.scheduling.snapshot import FEWER, GROUPS, TURNS

POLICIES: dict[str, Policy] = {
    "auto": auto,
    "unmanaged": unmanaged,
    "temporal": temporal,
    "greedy": greedy,
    "zico": zico,
    "waterwave": waterwave,
}
DEFAULT = "auto"

# Policies that choose by measurement (`scheduling.pace`), and among what; of three jobs or more also GROUPS.
# FEWER is there where they may set jobs aside.
MODES: dict[str, tuple[str, ...]] = {
    "zico": ("zico", TURNS),
    "waterwave": ("waterwave", TURNS),
    "auto": AUTO_MODES,
}


def may_set_aside(modes: Collection[str], order: str) -> bool:
    """Whether jobs may be set aside where these are to choose among; those that have a fair share each are not."""
    return FEWER in modes and order != FAIR


# What a mode permits is what a policy does.
OF_MODE: dict[str, Policy] = {**POLICIES, GROUPS: zico, FEWER: zico}

# Policies that promise memory by segments, at least in one of their modes; and those with doors, at which jobs wait.
SEGMENTED = tuple(name for name, modes in MODES.items() if "waterwave" in modes)
ORDERED = tuple(name for name in POLICIES if name != "unmanaged")

__all__ = ["DEFAULT", "MODES", "OF_MODE", "ORDERED", "POLICIES", "SEGMENTED", "Policy", "may_set_aside"]
