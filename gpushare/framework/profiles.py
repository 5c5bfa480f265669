"""A job's profile as the host tells it to its parent (plain JSON; the parent adds what was run)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from gpushare.framework import shares
from gpushare.framework.companions import Companions, Felt
from gpushare.isolation import context
from gpushare.native import doors, shim

STABLE_AFTER = 3  # profiled iterations
_BELIEVED = 16  # iterations of an earlier run, of the kind that came most often
_DISTURBED = 0.8  # as in `scheduling.meter`
_ALIKE = 0.8  # of the iterations are of one kind
_companions: Companions | None = None
_before: Times | None = None


@dataclass(frozen=True)
class Times:
    """Of the job's iterations, before companions disturbed them."""

    curve: doors.NativeCurve
    kinds: list[doors.NativeKind]

    @property
    def alike(self) -> bool:
        """Whether nearly all iterations are of one kind."""
        seen = [kind.seen for kind in self.kinds]
        return len(seen) < 2 or max(seen) >= _ALIKE * sum(seen)


def expect_one_job() -> None:
    """Its profile is all that it is run for, so it is measured beside companions too. By a thread of the host."""
    global _companions
    _companions = Companions(bandwidth=shim.device() < 0)


def stable(job: context.JobContext) -> bool:
    """Whether enough iterations have been measured. Where one job is expected: to be called at the end of each."""
    global _before
    curve = doors.curve_get(job.account)
    if curve is None or curve.version < STABLE_AFTER or not shares.enough(job):
        return False
    found = shares.of(job)
    if _companions is None or found is None:
        return True
    _before = _before or Times(curve, doors.kinds_get(job.account))
    try:
        return _companions.look(found.iteration_s, found.cores_busy, alike=_before.alike)
    except Exception as error:  # the script has no part in it
        job.note(f"what {job.name} takes of the GIL and of memory bandwidth can't be measured: {error}")
        return True


def _felt() -> Felt:
    if _companions is None:
        return Felt()
    _companions.close()
    return _companions.felt


def _times(curve: doors.NativeCurve, kinds: list[doors.NativeKind]) -> Times:
    """Those of before the companions came, if it is the same iterations still."""
    if _before is None:
        return Times(curve, kinds)
    same = len(_before.curve.time_ns) == len(curve.time_ns)
    same_kinds = [kind.allocations for kind in _before.kinds] == [kind.allocations for kind in kinds]
    return Times(_before.curve if same else curve, _before.kinds if same_kinds else kinds)


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
    felt, found = _felt(), shares.of(job)
    times = _times(curve, doors.kinds_get(job.account))
    if len(times.kinds) > 1:
        solo_ns = _of_first_kind(times, None if found else solo_ns)
    elif found:
        solo_ns = _solo_ns(found, felt)
    times_s, iteration_s = _solo_times(times.curve, solo_ns, alone=found is not None)
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
        "spread": list(found.spread) if found and len(times.kinds) < 2 else [],
        "gil_share": felt.gil_share,
        "sensitivity": felt.sensitivity,
        "pressure": felt.pressure,
        "curve": {"held_bytes": curve.held_bytes, "time_s": times_s},
        "kinds": _kinds(times.kinds, iteration_s),
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


def _kinds(found: list[doors.NativeKind], iteration_s: float) -> list[dict[str, Any]]:
    """As the profile has them; none if there is but one. Counts are those of this run.

    The first one is the profiled one's, so what came in this run is scaled from its time to `iteration_s`.
    """
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


def _solo_ns(found: shares.Shares, felt: Felt) -> int:
    """Of an iteration alone. What disturbs a machine only adds, so the shorter measurement counts."""
    return round(min(found.iteration_s, felt.alone_s or found.iteration_s) * 1e9)


def _of_first_kind(times: Times, solo_ns: int | None) -> int:
    """Nanoseconds of an iteration of the profiled one's kind.

    The curve covers all kinds: its last allocation may come when only the longest of them has come so far.

    :param solo_ns: of the profiled one alone, where others may have disturbed the rest; else None. It may have been an
        easy one of its kind (its workers were there already), so the kind that comes most often is held against it.
    """
    first, usual = times.kinds[0], max(times.kinds, key=lambda kind: kind.seen)
    if not first.seen:
        return max(times.curve.duration_ns, times.curve.time_ns[-1])
    disturbed = max(1.0, usual.duration_ns / solo_ns) if solo_ns else 1.0
    return round(first.duration_ns / disturbed)


def _solo_times(curve: doors.NativeCurve, solo_ns: int, *, alone: bool) -> tuple[list[float], float]:
    """When the allocations of an iteration happen that runs alone, and how long it takes, in seconds.

    The shim's times follow what jobs, or companions, do to each other: they are scaled to the iteration that was
    measured alone. The work after an iteration's last allocation is in it.

    :param alone: whether that iteration was; else others may have disturbed it that were setting up.
    """
    duration_ns = max(curve.duration_ns, curve.time_ns[-1])
    if not alone and duration_ns < _DISTURBED * solo_ns:
        solo_ns = duration_ns
    scale = min(1.0, solo_ns / duration_ns) if duration_ns else 1.0
    return [t * scale / 1e9 for t in curve.time_ns], solo_ns / 1e9
