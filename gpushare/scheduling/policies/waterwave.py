"""Waterwave's pipeline (sections 4.3 and 4.4): what one job allocates lies beside what another one frees.

All jobs start in rounds (`scheduling.pipeline`), each one so far behind the last that it rises while the other falls.
This is the early start of algorithm 1 for any number of jobs and any curves. The allocator of that paper hands memory
over at the ends of segments, pieces in which about `split_bytes` are allocated or freed, and starts lie there; here the
pool hands it over at each page, behind its own check, so that a start may lie at any allocation. With a split it is put
off to the end of a segment as there. Two starts that are put off, of one job behind another and of that one behind
the first, can make every round longer than planned.
"""

from __future__ import annotations

from bisect import bisect_left

from gpushare.profiles.segments import segments
from gpushare.scheduling.pipeline import Round, best_round, step_at
from gpushare.scheduling.policies.temporal import temporal
from gpushare.scheduling.snapshot import IterationCurve, JobState, Permit, Snapshot

_REPEATS = 256  # of a short iteration that are looked at


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
    step = _nearest(curve, shift_s) if split is None else _end_of_segment(curve, shift_s, split)
    if step >= len(curve.ordinals):
        return Permit(account, after, None, curve.duration_s)
    return Permit(account, after, curve.ordinals[step], curve.time_s[step])


def _nearest(curve: IterationCurve, shift_s: float) -> int:
    after = bisect_left(curve.time_s, shift_s)
    times = [*curve.time_s, curve.duration_s]
    return min(range(max(0, after - 1), after + 1), key=lambda step: abs(times[step] - shift_s))


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
