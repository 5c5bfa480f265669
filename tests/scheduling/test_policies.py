"""The conformance suite of policies, and what Zico's shift must be."""

from bisect import bisect_left

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpushare.scheduling.policies import MODES, OF_MODE, POLICIES
from gpushare.scheduling.policies.waterwave import allocations_made
from gpushare.scheduling.policies.zico import fits
from gpushare.scheduling.snapshot import SELDOM, IterationCurve, JobState, Snapshot, compress


def triangle(peak: int, up: int = 20, down: int = 40) -> IterationCurve:
    held = [round(peak * (i + 1) / up) for i in range(up)]
    held += [round(peak * (down - i - 1) / down) for i in range(down)]
    times = [float(i) for i in range(up + down)]
    return IterationCurve(tuple(range(up + down)), tuple(held), tuple(times), float(up + down), 0, up + down)


curves = st.builds(triangle, st.integers(50, 200), st.integers(2, 20), st.integers(2, 20))


@pytest.mark.parametrize("name", sorted(POLICIES))
@given(jobs=st.lists(st.one_of(st.none(), curves), max_size=4), budget=st.integers(50, 600))
def test_a_policy_is_pure_and_names_only_its_jobs(
    name: str, jobs: list[IterationCurve | None], budget: int
) -> None:
    snapshot = Snapshot(budget, tuple(JobState(i + 1, c) for i, c in enumerate(jobs)))
    permits = POLICIES[name](snapshot)
    assert permits == POLICIES[name](snapshot)
    accounts = {j.account for j in snapshot.jobs}
    for p in permits:
        assert p.account != p.after and {p.account, p.after} <= accounts
        assert p.shift_s >= 0
    assert len({(p.account, p.after) for p in permits}) == len(permits)


def test_in_turns_nothing_overlaps() -> None:
    jobs = (JobState(1, triangle(100)), JobState(2, triangle(100)))
    permits = POLICIES["zico"](Snapshot(400, jobs, mode="temporal"))
    assert [(p.account, p.after, p.allocations) for p in permits] == [(1, 2, None), (2, 1, None)]


@pytest.mark.parametrize("name", sorted(MODES))
def test_those_of_a_group_take_turns_and_all_others_run_as_under_zico(name: str) -> None:
    jobs = tuple(JobState(i, triangle(100)) for i in range(1, 5))
    groups = Snapshot(300, jobs, mode="groups", groups=(frozenset({1, 4}),))
    shared = {(p.account, p.after): p for p in POLICIES["zico"](Snapshot(300, jobs, mode="zico"))}
    assert {(p.account, p.after) for p in POLICIES[name](groups)} == shared.keys()
    for p in POLICIES[name](groups):
        if {p.account, p.after} == {1, 4}:
            assert p.allocations is None
        else:
            assert p == shared[p.account, p.after] and p.allocations is not None
    assert POLICIES[name](groups) == OF_MODE["groups"](groups)


@pytest.mark.parametrize("name", sorted(set(POLICIES) - {"temporal"}))
def test_a_single_profile_is_no_reason_to_shut_a_door(name: str) -> None:
    """A door with a permit for later waits for the next plan, which comes when the scheduler's thread has a core."""
    jobs = (JobState(1, triangle(100)), JobState(2, None), JobState(3, None))
    assert all(permit.allocations == 0 for permit in POLICIES[name](Snapshot(10_000, jobs)))


def shift(budget: int) -> float:
    a, b = triangle(100), triangle(100)
    permits = POLICIES["zico"](Snapshot(budget, (JobState(1, a), JobState(2, b))))
    (permit,) = (p for p in permits if p.account == 2)
    return permit.shift_s


def test_no_shift_when_both_fit() -> None:
    assert shift(200) == 0


def test_the_shift_shrinks_with_the_budget() -> None:
    shifts = [shift(b) for b in (105, 130, 160, 190, 200)]
    assert shifts == sorted(shifts, reverse=True)
    # 1:2 triangles at 1.05 peaks: the newcomer's peak meets the other one nearly at its end
    assert 36 <= shifts[0] <= 44


@given(curves, curves, st.integers(200, 500))
def test_a_shift_keeps_the_sum_in_the_budget_and_is_the_smallest(
    a: IterationCurve, b: IterationCurve, budget: int
) -> None:
    permits = POLICIES["zico"](Snapshot(budget, (JobState(1, a), JobState(2, b))))
    (permit,) = (p for p in permits if p.account == 2)
    if permit.allocations is None:
        assert not any(fits(b, a, step, budget) for step in range(len(a.ordinals)))
        return
    step = bisect_left(a.time_s, permit.shift_s)  # it lies in the step before, or at this one's beginning
    assert not any(fits(b, a, earlier, budget) for earlier in range(step))
    for i in range(step, len(a.time_s)):  # the sum at each of the running job's steps
        elapsed = int(a.time_s[i] - a.time_s[step])
        beside = b.held_bytes[elapsed] if elapsed < len(b.held_bytes) else 0
        assert a.held_bytes[i] + beside <= budget


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=3000))
def test_compressing_loses_no_peak(held: list[int]) -> None:
    curve = compress(held, [float(i) for i in range(len(held))], 0)
    assert len(curve.ordinals) <= 256
    assert curve.peak_bytes == max(held)


times = st.lists(st.one_of(st.floats(0, 0.01), st.floats(0, 1)), min_size=1, max_size=3000).map(sorted)


@given(times, st.floats(0, 1), st.floats(0.01, 1))
def test_compressing_keeps_how_many_allocations_come_before_a_moment(
    time_s: list[float], rest_s: float, at: float
) -> None:
    duration_s = time_s[-1] + rest_s
    curve = compress([0, *[100] * (len(time_s) - 1)], time_s, 0, duration_s=duration_s)
    moment_s = time_s[0] + at * (duration_s - time_s[0])
    if moment_s <= time_s[0]:
        return
    made, late_s = allocations_made(curve, moment_s)
    assert 1 <= made <= len(time_s)
    assert abs(moment_s - time_s[made - 1] - late_s) <= SELDOM * duration_s + 1e-9
