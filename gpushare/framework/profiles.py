"""A job's profile as the host tells it to its parent (plain JSON; the parent adds what was run)."""

from __future__ import annotations

from typing import Any

import torch

from gpushare.framework import shares
from gpushare.isolation import context
from gpushare.native import doors, shim

STABLE_AFTER = 3  # profiled iterations
_BELIEVED = 16  # iterations of an earlier run, of the kind that came most often
_DISTURBED = 0.8  # as in `scheduling.meter`


def stable(job: context.JobContext) -> bool:
    """Whether enough iterations have been measured."""
    curve = doors.curve_get(job.account)
    return curve is not None and curve.version >= STABLE_AFTER and shares.enough(job)


def _device() -> str:
    """As `launcher.devices.Device.kind` has it."""
    return f"cuda {torch.cuda.get_device_name(0)}" if shim.device() >= 0 else "cpu"


def take(job: context.JobContext, page_bytes: int) -> dict[str, Any] | None:
    """What is known of the job's iterations; None before its profiled iteration has ended.

    Bytes are bytes, times seconds since the iteration's start; the curve's index is the ordinal of the
    allocation.
    """
    curve = doors.curve_get(job.account)
    kinds = doors.peak_kinds(job.account)
    if curve is None or kinds is None:
        return None
    persistent, activation, temporary = kinds
    progress = doors.progress(job.account)
    solo_ns = progress.solo_ns if progress else curve.time_ns[-1]
    found = shares.of(job, solo_ns)
    times_s, iteration_s = _solo_times(curve, solo_ns, found)
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
        "iteration_s": iteration_s,
        "cores_busy": found.cores_busy if found else None,
        "python_share": found.python_share if found else None,
        "curve": {"held_bytes": curve.held_bytes, "time_s": times_s},
        "kinds": _kinds(job.account, iteration_s),
    }


def give(account: int, profile: dict[str, Any]) -> None:
    """Let the shim know what a saved profile (`Profile.to_json`) says of the job's iterations."""
    times_ns = [round(t * 1e9) for t in profile["curve"]["time_s"]]
    duration_ns = round(profile["iteration_s"] * 1e9)
    doors.curve_set(account, profile["curve"]["held_bytes"], times_ns, profile["residue_bytes"], duration_ns)
    kinds = profile["kinds"]
    for kind, seen in zip(kinds, _believed([kind["seen"] for kind in kinds]), strict=True):
        doors.kind_add(
            account,
            doors.NativeKind(
                ordinals=kind["ordinals"],
                held_bytes=kind["held_bytes"],
                time_ns=[round(t * 1e9) for t in kind["time_s"]],
                allocations=kind["allocations"],
                residue_bytes=kind["residue_bytes"],
                duration_ns=round(kind["iteration_s"] * 1e9),
                seen=seen,
                followed_by=_believed(kind["followed_by"]),
            ),
        )


def _believed(counts: list[int]) -> list[int]:
    """In the same order of size, but few, so that what comes in this run soon counts for more."""
    most = max(counts, default=0)
    return [-(-count * _BELIEVED // most) for count in counts] if most > _BELIEVED else counts


def _kinds(account: int, iteration_s: float) -> list[dict[str, Any]]:
    """As the profile has them; none if there is but one. Counts are those of this run.

    The first one is the profiled one's, so what came in this run is scaled from its time to `iteration_s`.
    """
    found = doors.kinds_get(account)
    if len(found) < 2:
        return []
    first = found[0]
    scale = iteration_s / first.duration_ns if first.seen and first.duration_ns else 1e-9
    return [
        {
            "ordinals": kind.ordinals,
            "held_bytes": kind.held_bytes,
            "time_s": [t * (scale if kind.seen else 1e-9) for t in kind.time_ns],
            "allocations": kind.allocations,
            "residue_bytes": kind.residue_bytes,
            "iteration_s": kind.duration_ns * (scale if kind.seen else 1e-9),
            "seen": kind.seen,
            "followed_by": kind.followed_by[: len(found)],
        }
        for kind in found
    ]


def _solo_times(
    curve: doors.NativeCurve, solo_ns: int, found: shares.Shares | None
) -> tuple[list[float], float]:
    """When the allocations of an iteration happen that runs alone, and how long it takes, in seconds.

    The shim's times follow what jobs do beside each other. If others were there they are scaled to the iteration
    that was measured alone; the work after an iteration's last allocation is in it.
    """
    end_ns = curve.time_ns[-1]
    if found and found.iteration_s is not None:
        return [t / 1e9 for t in curve.time_ns], max(found.iteration_s, end_ns / 1e9)
    duration_ns = max(curve.duration_ns, end_ns)
    if duration_ns < _DISTURBED * solo_ns:  # by jobs that were setting up
        solo_ns = duration_ns
    scale = min(1.0, solo_ns / duration_ns) if duration_ns else 1.0
    return [t * scale / 1e9 for t in curve.time_ns], max(solo_ns, round(end_ns * scale)) / 1e9
