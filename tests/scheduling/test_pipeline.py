"""Rounds of many jobs, looked at moment by moment."""

from bisect import bisect_right

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpushare.profiles.segments import segments
from gpushare.scheduling.pipeline import Round, best_round, work_per_s
from gpushare.scheduling.policies import POLICIES
from gpushare.scheduling.policies.waterwave import allocations_made, in_rounds
from gpushare.scheduling.snapshot import IterationCurve, JobState, Snapshot


@st.composite
def curves(draw: st.DrawFn) -> IterationCurve:
    residue = draw(st.integers(0, 10))
    above = draw(st.lists(st.integers(0, 60), min_size=1, max_size=12))
    duration_s = draw(st.sampled_from((0.3, 1.0, 1.1, 2.0)))
    times = tuple(duration_s * i / len(above) for i in range(len(above)))
    held = tuple(residue + a for a in above)
    return IterationCurve(tuple(range(len(above))), held, times, duration_s, residue, len(above))


def held_at(found: Round, jobs: list[IterationCurve], moment_s: float) -> int:
    """Bytes of all jobs at a moment of the round."""
    total = 0
    for curve, start_s, repeats in zip(jobs, found.starts_s, found.repeats, strict=True):
        since_s = (moment_s - start_s) % found.length_s
        total += curve.residue_bytes
        if since_s < repeats * curve.duration_s:
            step = bisect_right(curve.time_s, since_s % curve.duration_s) - 1
            total += max(0, curve.held_bytes[step] - curve.residue_bytes)
    return total


@settings(deadline=None)
@given(jobs=st.lists(curves(), min_size=2, max_size=4), share=st.floats(0, 1))
def test_a_round_fits_at_every_moment(jobs: list[IterationCurve], share: float) -> None:
    residues = sum(c.residue_bytes for c in jobs)
    least = residues + max(c.peak_bytes - c.residue_bytes for c in jobs)
    room = least + round(share * (sum(c.peak_bytes for c in jobs) - least))
    found = best_round(jobs, room)
    assert found is not None  # one after the other fits
    for i in range(997):
        assert held_at(found, jobs, found.length_s * i / 997) <= room
    for curve, repeats in zip(jobs, found.repeats, strict=True):
        assert 1 <= repeats * curve.duration_s / curve.duration_s <= found.length_s / curve.duration_s + 1e-3
    assert work_per_s(jobs, found.repeats, found.length_s) <= len(jobs) + 1e-6


def test_nothing_fits_where_one_job_does_not() -> None:
    curve = IterationCurve((0, 1), (5, 100), (0.0, 0.5), 1.0, 5, 2)
    assert best_round([curve, curve], 104) is None
    assert best_round([curve, curve], 105) is not None


def triangle(duration_s: float = 1.0) -> IterationCurve:
    held = [*range(1, 65), *range(63, -1, -1)]
    times = tuple(duration_s * i / 128 for i in range(128))
    return IterationCurve(tuple(range(0, 1280, 10)), tuple(held), times, duration_s, 0, 1280)


def test_with_room_for_all_everybody_starts_at_once() -> None:
    found = best_round([triangle()] * 4, 4 * 64)
    assert found == Round(1.0, (0.0, 0.0, 0.0, 0.0), (1, 1, 1, 1))


def test_starts_are_at_the_nearest_allocations() -> None:
    found = best_round([triangle()] * 3, 90)
    assert found is not None
    for p in in_rounds(found, [JobState(i + 1, triangle()) for i in range(3)], None):
        planned_s = (found.starts_s[p.account - 1] - found.starts_s[p.after - 1]) % found.length_s
        if planned_s >= 1:
            assert p.allocations is None
        else:
            assert p.shift_s == pytest.approx(planned_s) and not p.by_forecast
            assert p.allocations is not None
            at_s = max(0, p.allocations - 1) / 1280  # when the last of so many was made
            assert 0 <= planned_s - at_s < 1 / 1270


@pytest.mark.parametrize("allocations", [1, 4, 400])
def test_a_start_is_at_the_last_allocation_before_it(allocations: int) -> None:
    ordinals = (0, 50, 50 + allocations, 80 + allocations)
    flat = IterationCurve(ordinals, (10, 60, 10, 0), (0.0, 0.3, 0.7, 0.9), 1.0, 0, 180 + allocations)

    def made(shift_s: float) -> int:
        found, late_s = allocations_made(flat, shift_s)
        assert 0 <= late_s <= 0.4 / min(allocations, 20)
        return found

    assert made(0.0) == 0
    assert made(0.3) == 50 + 1
    assert made(0.5) == 50 + allocations // 2 + 1
    assert made(0.7 - 1e-4) == 50 + allocations
    assert made(0.95) == 80 + allocations + 50 + 1
    assert made(1.0) == 180 + allocations
    assert allocations_made(flat, 0.55)[1] == pytest.approx(
        (0.25 * allocations / 0.4 % 1) * 0.4 / allocations
    )


@pytest.mark.parametrize(("allocations", "by_forecast"), [(4, True), (400, False)])
def test_where_allocations_are_seldom_a_start_waits_for_its_forecast(
    allocations: int, by_forecast: bool
) -> None:
    """It would be much too early at the last allocation before it, and too late at the next one."""
    ordinals = tuple(range(0, allocations, allocations // 4))
    curve = IterationCurve(ordinals, (160, 210, 160, 140), (0.0, 0.2, 0.65, 0.87), 1.0, 0, allocations)
    found = Round(1.34, (0.0, 0.55), (1, 1))
    permits = in_rounds(found, [JobState(1, curve), JobState(2, curve)], None)
    assert [p.by_forecast for p in permits if p.account == 2] == [by_forecast]


def test_the_size_of_segments_may_be_given() -> None:
    jobs = tuple(JobState(i + 1, triangle()) for i in range(3))
    curve = triangle()
    for split in (40, 13):
        permits = POLICIES["waterwave"](Snapshot(90, jobs, split_bytes=split))
        ends = {curve.ordinals[end] + 1 for _, end in segments(curve.held_bytes, split)[:-1]}
        given_ = {p.allocations for p in permits if p.allocations}
        assert given_ and given_ <= ends


def test_where_no_round_goes_well_starts_are_as_early_as_they_fit() -> None:
    """Three of one shape beside one whose iterations are a third as long."""
    three = tuple(JobState(i + 1, triangle()) for i in range(3))
    equal = Snapshot(70, three[:2])
    assert any(p.allocations for p in POLICIES["waterwave"](equal))
    unlike = Snapshot(90, (*three, JobState(4, triangle(0.37)), JobState(5, triangle(0.7))))
    assert POLICIES["waterwave"](unlike) == POLICIES["zico"](unlike)


def test_in_turns_nothing_overlaps() -> None:
    jobs = (JobState(1, triangle()), JobState(2, triangle()))
    permits = POLICIES["waterwave"](Snapshot(400, jobs, mode="temporal"))
    assert [p.allocations for p in permits] == [None, None]


@pytest.mark.parametrize("ratio", [3, 50, 1000, 10**7])
def test_a_job_with_far_shorter_iterations_costs_no_more_to_plan(ratio: int) -> None:
    def curve(duration_s: float) -> IterationCurve:
        held = [*range(100), *range(100, 0, -1)]
        times = tuple(duration_s * i / len(held) for i in range(len(held)))
        return IterationCurve(tuple(range(len(held))), tuple(held), times, duration_s, 0, len(held))

    jobs, room = [curve(1.0), curve(1.0 / ratio)], 150
    found = best_round(jobs, room)
    assert found is not None and work_per_s(jobs, found.repeats, found.length_s) > 1
    for i in range(997):
        assert held_at(found, jobs, found.length_s * i / 997) <= room
    states = tuple(JobState(i + 1, c) for i, c in enumerate(jobs))
    assert len(POLICIES["waterwave"](Snapshot(room, states))) == 2
