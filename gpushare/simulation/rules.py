"""What a run is told beside its policy."""

from __future__ import annotations

from dataclasses import dataclass

from gpushare.jobs import FIFO


@dataclass(frozen=True)
class Rules:
    """`order`: who goes first of the jobs that wait (`jobs.ORDERS`). `split_bytes`: as in `scheduling.snapshot`."""

    order: str = FIFO
    split_bytes: int | None = None


PLAIN = Rules()
