"""A job's profile as the host tells it to its parent (plain JSON; the parent adds what was run)."""

from __future__ import annotations

from typing import Any

import torch

from gpushare.isolation import context
from gpushare.native import shim

STABLE_AFTER = 3  # profiled iterations


def stable(job: context.JobContext) -> bool:
    """Whether enough iterations have been measured."""
    curve = shim.curve_get(job.account)
    return curve is not None and curve.version >= STABLE_AFTER


def _device() -> str:
    """As `launcher.devices.Device.kind` has it."""
    return f"cuda {torch.cuda.get_device_name(0)}" if shim.device() >= 0 else "cpu"


def take(job: context.JobContext, page_bytes: int) -> dict[str, Any] | None:
    """What is known of the job's iterations; None before its profiled iteration has ended.

    Bytes are bytes, times seconds since the iteration's start; the curve's index is the ordinal of the
    allocation.
    """
    curve = shim.curve_get(job.account)
    kinds = shim.peak_kinds(job.account)
    if curve is None or kinds is None:
        return None
    persistent, activation, temporary = kinds
    return {
        "torch": torch.__version__.split("+")[0],
        "device": _device(),
        "page_bytes": page_bytes,
        "persistent_bytes": persistent,
        "activation_bytes": activation,
        "temporary_bytes": temporary,
        "peak_held_bytes": max(curve.held_bytes),
        "peak_live_bytes": persistent + activation + temporary,
        "residue_bytes": curve.residue_bytes,
        "iteration_s": curve.time_ns[-1] / 1e9,
        "curve": {"held_bytes": curve.held_bytes, "time_s": [t / 1e9 for t in curve.time_ns]},
    }
