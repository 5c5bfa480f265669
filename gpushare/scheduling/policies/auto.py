"""The permits of the mode in force; `scheduling.pace` chooses it by measurement."""

from __future__ import annotations

from gpushare.scheduling.policies.base import Policy
from gpushare.scheduling.policies.temporal import temporal
from gpushare.scheduling.policies.waterwave import waterwave
from gpushare.scheduling.policies.zico import zico
from gpushare.scheduling.snapshot import FEWER, TURNS, Permit, Snapshot

_MODES: dict[str, Policy] = {"zico": zico, "waterwave": waterwave, TURNS: temporal, FEWER: zico}
AUTO_MODES = tuple(_MODES)


def auto(snapshot: Snapshot) -> list[Permit]:
    """What the snapshot's mode permits; `zico` before there is one."""
    return _MODES.get(snapshot.mode or "zico", zico)(snapshot)
