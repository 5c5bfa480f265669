"""Zico's scrooge scheduler (section 5): the smallest time shift at which two iterations fit.

An iteration of one job may start while another's runs once the other has come so far that from there on
the two together stay within the budget, both going on at their measured pace. The shift is for the record: the
permit is by forecast, so that the shim looks for that point with all that run, from how far they have come. Where the
pace together is measured to be slower than one after the other, no two iterations overlap; where that is so for some
of the jobs (`scheduling.groups`), no two of these.
"""

from __future__ import annotations

from bisect import bisect_right

from gpushare.scheduling.policies.temporal import temporal
from gpushare.scheduling.snapshot import IterationCurve, Permit, Snapshot

_HALVINGS = 6  # of the step in which a start comes to fit
_LEAST_OVERLAP = 1 / 32  # of an iteration; with less two jobs take turns


def zico(snapshot: Snapshot) -> list[Permit]:
    """A permit for each ordered pair of profiled jobs; the others' residues are set aside."""
    if snapshot.take_turns:
        return temporal(snapshot)
    snapshot = snapshot.here
    permits = []
    residues = {j.account: j.curve.residue_bytes for j in snapshot.jobs if j.curve}
    for job in snapshot.jobs:
        for other in snapshot.jobs:
            if job is other or job.curve is None or other.curve is None:
                continue
            if snapshot.apart(job.account, other.account):
                permits.append(Permit(job.account, other.account, None, other.curve.duration_s))
                continue
            bystanders = sum(residues.values()) - residues[job.account] - residues[other.account]
            room = snapshot.budget_bytes - snapshot.reserved_bytes - bystanders
            permits.append(_permit(job.account, job.curve, other.account, other.curve, room))
    return permits


def _permit(
    account: int, newcomer: IterationCurve, after: int, running: IterationCurve, room_bytes: int
) -> Permit:
    steps = len(running.time_s)
    step = next((i for i in range(steps) if fits(newcomer, running, i, room_bytes)), steps)
    shift_s = _shift_before(newcomer, running, step, room_bytes)
    if step == steps and shift_s > running.duration_s * (1 - _LEAST_OVERLAP):
        return Permit(account, after, None, running.duration_s)
    return Permit(account, after, 0, shift_s, by_forecast=True)


def _shift_before(newcomer: IterationCurve, running: IterationCurve, step: int, room_bytes: int) -> float:
    """The time shift where this step, or the end, is the first that fits: mostly within the step before."""
    end_s = running.duration_s if step == len(running.time_s) else running.time_s[step]
    if step == 0 or running.residue_bytes + newcomer.peak_bytes > room_bytes:
        return end_s
    begin_s = running.time_s[step - 1]
    misfit_s, fit_s = 0.0, end_s - begin_s
    for _ in range(_HALVINGS):
        middle_s = (misfit_s + fit_s) / 2
        if fits(newcomer, running, step - 1, room_bytes, middle_s):
            fit_s = middle_s
        else:
            misfit_s = middle_s
    return begin_s + fit_s


def fits(
    newcomer: IterationCurve, running: IterationCurve, step: int, room_bytes: int, late_s: float = 0.0
) -> bool:
    """Whether `newcomer`, started `late_s` after the beginning of a step of `running`, stays with it within the room.

    :param room_bytes: for both, until the newcomer ends.
    """
    shift_s = running.time_s[step] + late_s
    for i in range(step, len(running.held_bytes)):
        begin = max(0.0, running.time_s[i] - shift_s)
        end = _end_of_step(running, i) - shift_s
        if running.held_bytes[i] + _most_between(newcomer, begin, end) > room_bytes:
            return False
    return running.residue_bytes + newcomer.peak_bytes <= room_bytes


def _end_of_step(curve: IterationCurve, i: int) -> float:
    return curve.time_s[i + 1] if i + 1 < len(curve.time_s) else curve.duration_s


def _most_between(curve: IterationCurve, begin_s: float, end_s: float) -> int:
    first = max(0, bisect_right(curve.time_s, begin_s) - 1)
    last = max(first + 1, bisect_right(curve.time_s, end_s))
    if begin_s >= curve.duration_s:
        return curve.residue_bytes
    return max(curve.held_bytes[first:last])
