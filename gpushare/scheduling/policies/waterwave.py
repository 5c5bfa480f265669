"""Waterwave's pipeline (sections 4.3 and 4.4): what one job allocates lies beside what another one frees.

Curves are cut into segments, pieces in which about `split_bytes` are allocated or freed. All jobs start in rounds
(`scheduling.pipeline`), each one behind the last at the end of a segment of that, so that it rises while the
other falls. This is the early start of algorithm 1 for any number of jobs and any curves. The allocator of that
paper hands memory over at the ends of segments; here the pool hands it over at each page, behind its own check.
"""

from __future__ import annotations

from gpushare.profiles.segments import segments
from gpushare.scheduling.pipeline import Round, best_round, step_at
from gpushare.scheduling.policies.temporal import temporal
from gpushare.scheduling.snapshot import IterationCurve, JobState, Permit, Snapshot

_REPEATS = 256  # of a short iteration that are looked at
_SEGMENTS = 32  # that an iteration has, up and down, if its split is not given


def waterwave(snapshot: Snapshot) -> list[Permit]:
    """A permit for each ordered pair of profiled jobs, at the end of a segment of the second one."""
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


def split_bytes(curve: IterationCurve) -> int:
    """So large that the iteration has about `_SEGMENTS` segments."""
    pairs = zip(curve.held_bytes, curve.held_bytes[1:], strict=False)
    return max(1, sum(abs(b - a) for a, b in pairs) // _SEGMENTS)


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
    ends = [0, *(end for _, end in segments(curve.held_bytes, split or split_bytes(curve)))]
    step = next((end for end in ends if end >= step_at(curve, shift_s)), len(curve.ordinals))
    if step >= len(curve.ordinals):
        return Permit(account, after, None, curve.duration_s)
    return Permit(account, after, curve.ordinals[step], curve.time_s[step])


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
