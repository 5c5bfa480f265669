"""Waterwave's pipeline (sections 4.3 and 4.4): what one job allocates lies beside what another one frees.

All jobs start in rounds (`scheduling.pipeline`), each one so far behind the last that it rises while the other falls.
This is the early start of algorithm 1 for any number of jobs and any curves. The allocator of that paper hands memory
over at the ends of segments, pieces in which about `split_bytes` are allocated or freed, and starts lie there. Here the
shim promises memory by small segments (`scheduling.leases`) and passes on at each page what is not promised, so that a
start may lie at any allocation. With a split it is put off to the end of a segment as there. Two starts that are put
off, of one job behind another and of that one behind the first, can make every round longer than planned.
"""

from __future__ import annotations

import math

from gpushare.profiles.segments import segments
from gpushare.scheduling.pipeline import Round, best_round, step_at
from gpushare.scheduling.policies.temporal import temporal
from gpushare.scheduling.snapshot import IterationCurve, JobState, Permit, Snapshot

_REPEATS = 256  # of a short iteration that are looked at
_SELDOM = 1 / 32  # of the iteration, between two allocations
_EDGE = 1e-6  # times are not exact


def waterwave(snapshot: Snapshot) -> list[Permit]:
    """A permit for each ordered pair of profiled jobs, where the second one is when the first one starts."""
    jobs = [job for job in snapshot.jobs if job.curve]
    curves = [job.curve for job in jobs if job.curve]
    if snapshot.take_turns or len(jobs) < 2:
        return temporal(snapshot)
    found = best_round(curves, snapshot.budget_bytes - snapshot.reserved_bytes)
    if found is None:
        return temporal(snapshot)
    split = snapshot.split_bytes
    return [
        _permit(found, curves, i, j, jobs, split)
        for i in range(len(jobs))
        for j in range(len(jobs))
        if i != j
    ]


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
    if split is None:
        return Permit(account, after, _ordinal_at(curve, shift_s), shift_s)
    step = _end_of_segment(curve, shift_s, split)
    if step >= len(curve.ordinals):
        return Permit(account, after, None, curve.duration_s)
    return Permit(account, after, curve.ordinals[step], curve.time_s[step])


def _ordinal_at(curve: IterationCurve, shift_s: float) -> int | None:
    """The allocation that comes at this time, the nearest one; None: the iteration's end.

    A step of the curve stands for many allocations, which are taken to come evenly. Where they come seldom it is the
    next one: a start that is much too early stalls in mid-iteration.
    """
    step = step_at(curve, shift_s)
    begin, begin_s, is_last = curve.ordinals[step], curve.time_s[step], step + 1 == len(curve.ordinals)
    end = begin + 1 if is_last else curve.ordinals[step + 1]
    end_s = curve.duration_s if is_last else curve.time_s[step + 1]
    apart_s = (end_s - begin_s) / (end - begin)
    passed = (shift_s - begin_s) / apart_s if apart_s > 0 else 0.0
    seldom = apart_s > curve.duration_s * _SELDOM
    ordinal = begin + (math.ceil(passed - _EDGE) if seldom else round(passed))
    return None if is_last and ordinal >= end else ordinal


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
