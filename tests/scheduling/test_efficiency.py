"""Efficiency against the course of jobs that it is short for, and figures that follow from its words."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpushare.scheduling.efficiency import efficiency

rates = st.lists(st.floats(0.01, 1.0), min_size=2, max_size=8)


def when_all_are_done(of: list[float]) -> float:
    """Step by step: each job has one second left; who ends first gives way to the rest."""
    gain = (sum(of) - 1) / (len(of) - 1)
    left = dict.fromkeys(range(len(of)), 1.0)
    now_s = 0.0
    while left:
        together = 1 + gain * (len(left) - 1)
        scale = together / sum(of[i] for i in left)
        passed_s = min(rest / (of[i] * scale) for i, rest in left.items())
        now_s += passed_s
        left = {i: rest - of[i] * scale * passed_s for i, rest in left.items()}
        left = {i: rest for i, rest in left.items() if rest > 1e-9}
    return now_s


@given(rates)
def test_it_is_what_jobs_of_equal_length_take(of: list[float]) -> None:
    assert efficiency(of) == pytest.approx(len(of) / when_all_are_done(of), rel=1e-6)


@given(st.floats(0.01, 1.0), st.integers(2, 8))
def test_even_jobs_have_their_sum(rate: float, jobs: int) -> None:
    assert efficiency([rate] * jobs) == pytest.approx(rate * jobs)


@given(rates)
def test_uneven_jobs_lie_between_one_and_their_sum(of: list[float]) -> None:
    least, most = sorted((1.0, sum(of)))
    assert least - 1e-9 <= efficiency(of) <= most + 1e-9


@pytest.mark.parametrize(
    ("of", "found"),
    [
        ([1.0, 0.5], 4 / 3),  # one is done after a second, the other one half a second later
        ([0.75, 0.75], 1.5),  # as much work per second
        ([1.0, 0.0], 1.0),  # the other one has yet to run
        ([0.5, 0.5], 1.0),
        ([0.0, 0.0], 0.0),
        ([0.7], 0.7),
    ],
)
def test_by_hand(of: list[float], found: float) -> None:
    assert efficiency(of) == pytest.approx(found)
