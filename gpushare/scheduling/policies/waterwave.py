"""Waterwave's pipeline (sections 4.3 and 4.4): what one job allocates lies beside what another one frees.

Jobs start in rounds (`scheduling.pipeline`), each one so far behind the last that it rises while the other falls. This
is the early start of algorithm 1 for any number of jobs and any curves. The allocator of that paper hands memory over
at the ends of segments, pieces in which about `split_bytes` are allocated or freed, and starts lie there. Here the shim
promises memory by small segments (`scheduling.leases`) and passes on at each page what is not promised, so that a start
may lie at any allocation; where these come too seldom to name the moment it waits from the last one on until it is
forecast to fit. With a split it is put off to the end of a segment as there. Two starts that are put off, of one job
behind another and of that one behind the first, can make every round longer than planned.

A round comes again and again for all alike, and many unlike jobs do not go well into one. Where they are forecast to
do clearly better without (`scheduling.efficiency`), each start is as early as it fits with all that run then:
algorithm 1 from how far they have come, not from a plan.
"""

from __future__ import annotations

from gpushare.profiles.segments import segments
from gpushare.scheduling.efficiency import efficiency
from gpushare.scheduling.look_ahead import rates_of
from gpushare.scheduling.pipeline import Round, best_round, step_at
from gpushare.scheduling.policies.temporal import temporal
from gpushare.scheduling.policies.zico import zico
from gpushare.scheduling.snapshot import GROUPS, SELDOM, IterationCurve, JobState, Permit, Snapshot

_CLEARLY = 1.05  # better, as forecast
_REPEATS = 256  # of a short iteration that are looked at
_EDGE = 1e-6  # times are not exact


def waterwave(snapshot: Snapshot) -> list[Permit]:
    """A permit for each ordered pair of profiled jobs, where the second one is when the first one starts."""
    jobs = [job for job in snapshot.jobs if job.curve]
    curves = [job.curve for job in jobs if job.curve]
    if snapshot.take_turns:
        return temporal(snapshot)
    if snapshot.mode == GROUPS:
        return zico(snapshot)  # a round has all jobs in it, side by side
    if len(jobs) < 2:
        return []  # nothing to plan yet: a permit for later would keep doors shut until the next plan
    room = snapshot.budget_bytes - snapshot.reserved_bytes
    found = best_round(curves, room)
    if found is None:
        return temporal(snapshot)
    planned = in_rounds(found, jobs, snapshot.split_bytes)
    if snapshot.split_bytes is not None:
        return planned
    as_they_fit, accounts = zico(snapshot), [job.account for job in jobs]
    early, rounds = (efficiency(rates_of(p, accounts, curves, room)) for p in (as_they_fit, planned))
    return as_they_fit if early > rounds * _CLEARLY else planned


def in_rounds(found: Round, jobs: list[JobState], split_bytes: int | None) -> list[Permit]:
    """Where each of these jobs, all of which have a curve, is in the round when another one first starts in it."""
    curves = [job.curve for job in jobs if job.curve]
    pairs = ((i, j) for i in range(len(jobs)) for j in range(len(jobs)) if i != j)
    return [_permit(found, curves, i, j, jobs, split_bytes) for i, j in pairs]


def _permit(
    found: Round,
    curves: list[IterationCurve],
    newcomer: int,
    running: int,
    jobs: list[JobState],
    split: int | None,
) -> Permit:
    account, after = jobs[newcomer].account, jobs[running].account
    curve = curves[running]
    shift_s = _shift_s(found, curves, newcomer, running)
    if shift_s is None:
        return Permit(account, after, None, curve.duration_s)
    if split is not None:
        step = _end_of_segment(curve, shift_s, split)
        if step == len(curve.ordinals):
            return Permit(account, after, None, curve.duration_s)
        shift_s = curve.time_s[step]
    made, late_s = allocations_made(curve, shift_s)
    return Permit(account, after, made, shift_s, by_forecast=late_s > curve.duration_s * SELDOM)


def allocations_made(curve: IterationCurve, shift_s: float) -> tuple[int, float]:
    """How many there are so long after the iteration's start, and how much later that is than the last of them.

    A step of the curve stands for many allocations, which are taken to come evenly. It is short, or of one allocation
    (`snapshot.compress`).
    """
    if shift_s <= 0:
        return 0, 0.0
    step = step_at(curve, shift_s)
    begin, begin_s = curve.ordinals[step], curve.time_s[step]
    if step + 1 < len(curve.ordinals):
        end, end_s = curve.ordinals[step + 1], curve.time_s[step + 1]
    else:
        end, end_s = curve.allocations, curve.duration_s
    apart_s = (end_s - begin_s) / (end - begin)
    more = int((shift_s - begin_s) / apart_s + _EDGE) if apart_s > 0 else 0
    made = min(begin + more + 1, end)
    return made, shift_s - (begin_s + (made - 1 - begin) * apart_s)


def _end_of_segment(curve: IterationCurve, shift_s: float, split_bytes: int) -> int:
    ends = [0, *(end for _, end in segments(curve.held_bytes, split_bytes))]
    return next((end for end in ends if end >= step_at(curve, shift_s)), len(curve.ordinals))


def _shift_s(found: Round, curves: list[IterationCurve], newcomer: int, running: int) -> float | None:
    """How far an iteration of `running` has come when the first of `newcomer`'s starts in it; None if none does."""
    duration_s = curves[running].duration_s
    shifts = []
    for repeat in range(min(found.repeats[newcomer], _REPEATS)):
        start_s = found.starts_s[newcomer] + repeat * curves[newcomer].duration_s
        apart_s = (start_s - found.starts_s[running]) % found.length_s
        if apart_s < found.repeats[running] * duration_s - 1e-9:
            shifts.append(apart_s % duration_s)
    return min(shifts, default=None)
