"""What permits are forecast to yield, against figures that follow from the shapes."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpushare.native.shim import POLICIES as MECHANISMS
from gpushare.scheduling.forecast import forecasts
from gpushare.scheduling.look_ahead import rates_of
from gpushare.scheduling.policies import DEFAULT, MODES, OF_MODE, POLICIES
from gpushare.scheduling.snapshot import TURNS, IterationCurve, JobState, Permit, Snapshot

PEAK = 1000


def triangle(up: int, down: int, duration_s: float = 1.0, peak: int = PEAK) -> IterationCurve:
    held = [round(peak * (i + 1) / up) for i in range(up)]
    held += [round(peak * (down - i - 1) / down) for i in range(down)]
    n = up + down
    times = tuple(duration_s * i / n for i in range(n))
    return IterationCurve(tuple(range(n)), tuple(held), times, duration_s, 0, n)


def snapshot(peaks: float, *curves: IterationCurve) -> Snapshot:
    return Snapshot(round(peaks * PEAK), tuple(JobState(i + 1, c) for i, c in enumerate(curves)))


@pytest.mark.parametrize(("shape", "peaks"), [((40, 40), 1.01), ((30, 60), 1.26)])
def test_triangles_that_fit_into_each_other_yield_nearly_two(shape: tuple[int, int], peaks: float) -> None:
    found = forecasts(snapshot(peaks, triangle(*shape), triangle(*shape)), MODES["auto"])
    assert found["zico"] == pytest.approx(2, abs=0.15) and found["waterwave"] > 1.7
    assert found[TURNS] == 1.0


def test_less_memory_yields_less() -> None:
    found = [
        forecasts(snapshot(p, triangle(30, 60), triangle(30, 60)), MODES["zico"])["zico"]
        for p in (1.02, 1.1, 1.2, 1.9)
    ]
    assert found == sorted(found) and found[0] < 1.8


def test_where_all_peaks_fit_sharing_is_one_mode() -> None:
    found = forecasts(snapshot(3.0, *[triangle(30, 60)] * 3), MODES["auto"])
    assert found == {"zico": 3.0, TURNS: 1.0}


def test_flat_jobs_that_fit_one_at_a_time_yield_as_much_as_turns() -> None:
    flat = IterationCurve((0,), (PEAK,), (0.0,), 1.0, 0, 1)
    found = forecasts(snapshot(1.5, flat, flat), MODES["auto"])
    assert found["zico"] == pytest.approx(1, abs=0.05) and "waterwave" not in found


def test_many_jobs_are_forecast_to_share_by_their_sum() -> None:
    found = forecasts(snapshot(5, *[triangle(30, 60)] * 20), MODES["auto"])
    assert found["zico"] > 5
    assert "waterwave" not in found  # it has no round that is as good, and permits the same


def test_permits_that_promise_too_much_stall() -> None:
    curves = [triangle(30, 60)] * 4
    greedy = [Permit(a, b, 0, 0.0) for a in range(4) for b in range(4) if a != b]
    assert rates_of(greedy, range(4), curves, 4 * PEAK) == pytest.approx([1] * 4)
    assert sum(rates_of(greedy, range(4), curves, round(1.6 * PEAK))) < 3


curves = st.builds(
    triangle, st.integers(1, 20), st.integers(1, 20), st.sampled_from((0.01, 0.3, 1.0)), st.integers(1, PEAK)
)


@settings(max_examples=60, deadline=None)
@given(jobs=st.lists(st.one_of(st.none(), curves), min_size=2, max_size=5), peaks=st.floats(1, 3))
def test_a_forecast_lies_between_one_and_all(jobs: list[IterationCurve | None], peaks: float) -> None:
    known = [c for c in jobs if c]
    if len(known) < 2:
        return
    of = Snapshot(round(peaks * PEAK), tuple(JobState(i + 1, c) for i, c in enumerate(jobs)))
    for value in forecasts(of, MODES["auto"]).values():
        assert 0.9 <= value <= len(known) + 1e-6


def test_auto_gives_the_permits_of_its_mode() -> None:
    of = snapshot(1.3, triangle(30, 60), triangle(30, 60))
    for mode in MODES["auto"]:
        chosen = Snapshot(of.budget_bytes, of.jobs, 0, mode)
        assert POLICIES["auto"](chosen) == OF_MODE[mode](of)
    assert POLICIES["auto"](of) == POLICIES["zico"](of)


def test_each_policy_has_a_mechanism_and_each_mode_is_a_policy() -> None:
    assert set(MECHANISMS) == set(POLICIES) and DEFAULT in POLICIES
    assert set(MODES) <= set(POLICIES)
    assert {mode for modes in MODES.values() for mode in modes} <= set(OF_MODE)


# Two iterations of which each holds its peak for a moment: they fit all but side by side in step.
def spike(duration_s: float, at: float = 0.54, peak_share: float = 0.036) -> IterationCurve:
    held = (180, 300, PEAK, 320)
    times = tuple(duration_s * t for t in (0.0, 0.09, at, at + peak_share))
    return IterationCurve(tuple(range(4)), held, times, duration_s, 80, 4)


@settings(max_examples=200, deadline=None)
@given(st.floats(0.001, 10), st.floats(0.2, 0.9), st.floats(0.001, 0.05))
def test_a_moment_s_peak_does_not_last(duration_s: float, at: float, share: float) -> None:
    curve = spike(duration_s, at, share)
    assert forecasts(snapshot(1.6, curve, curve), MODES["zico"])["zico"] > 1.75


@settings(max_examples=200, deadline=None)
@given(st.floats(0.001, 10), st.floats(0.7, 0.9), st.floats(0.001, 0.05))
def test_a_moment_s_peak_is_not_missed(duration_s: float, at: float, share: float) -> None:
    curve = spike(duration_s, at, share)  # there is no room for one beside any part of another iteration
    assert forecasts(snapshot(1.1, curve, curve), MODES["zico"])["zico"] < 1.1 / at


@pytest.mark.parametrize("duration_s", [0.01, 0.02, 0.03, 0.04, 0.06, 0.5])
def test_short_iterations_do_not_keep_a_long_one_from_its_memory(duration_s: float) -> None:
    found = forecasts(snapshot(1.2, triangle(30, 60), triangle(30, 60, duration_s, 300)), MODES["auto"])
    assert found["zico"] > 1.7 and found.get("waterwave", found["zico"]) > 1.5


def test_who_is_set_aside_now_counts_in_what_all_would_do() -> None:
    of = snapshot(1.6, *[triangle(30, 60)] * 4)
    aside = replace(of, aside=frozenset({of.jobs[0].account}))
    assert forecasts(aside, MODES["auto"]) == forecasts(of, MODES["auto"])
