"""The casts of weights that autocast keeps, per job: the table is the shim's (`shim/src/interpose_autocast.cpp`)."""

from __future__ import annotations

import torch

from gpushare.isolation import context


def install() -> None:
    """Nothing: the shim has been loaded before torch."""


def enter(job: context.JobContext) -> None:
    """Nothing: a table is made by a job's first cast."""


def leave(job: context.JobContext) -> None:
    """A script that has entered autocast for good leaves its casts, and with them its weights, behind."""
    torch.clear_autocast_cache()
