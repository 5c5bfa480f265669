"""Efficiency: what follows from its words, and some by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpushare.scheduling.efficiency import doubt, efficiency, serial_share, slowed_down

rates = st.lists(st.floats(0.01, 1.0), min_size=2, max_size=8)


@given(rates, st.data())
def test_more_of_a_job_is_never_worse(of: list[float], data: st.DataObject) -> None:
    job = data.draw(st.integers(0, len(of) - 1))
    more = [*of]
    more[job] = data.draw(st.floats(of[job], 1.0))
    assert efficiency(more) >= efficiency(of) - 1e-9


@given(rates)
def test_nothing_ends_sooner_than_the_slowest_job_can(of: list[float]) -> None:
    first_s = 1 / max(of)
    assert len(of) / efficiency(of) >= first_s + (1 - min(of) * first_s) - 1e-9


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
        ([1.0, 1.0, 0.0], 1.5),  # two are done after a second, together they do two; the third one runs alone
        ([0.8, 0.4, 0.4], 3 / (1.25 + 1 / 1.3)),  # of 1.6 two jobs do 1.3, in a second of solo time
        ([1.0, 0.0], 1.0),  # the other one has yet to run
        ([0.5, 0.5], 1.0),
        ([0.0, 0.0], 0.0),
        ([0.7], 0.7),
    ],
)
def test_by_hand(of: list[float], found: float) -> None:
    assert efficiency(of) == pytest.approx(found)


@given(
    st.lists(st.tuples(st.floats(0.0, 1.0), st.floats(0.0, 0.5), st.floats(-1, 1)), min_size=2, max_size=6)
)
def test_it_is_off_by_no_more_than_its_doubt(of: list[tuple[float, float, float]]) -> None:
    read = [max(0.0, rate + off * part) for rate, off, part in of]
    true = [rate for rate, _, _ in of]
    if max(read) > 1 or sum(read) <= 0:
        return
    assert abs(efficiency(true) - efficiency(read)) <= doubt(read, [off for _, off, _ in of]) + 1e-9


@given(st.floats(1.01, 20.0), st.floats(0.1, 20.0), st.floats(1.0, 30.0))
def test_what_is_serial_explains_what_was_measured_and_limits_all_else(
    forecast: float, measured: float, other: float
) -> None:
    serial = serial_share(forecast, measured)
    assert 0 <= serial <= 1
    assert slowed_down(forecast, serial) == pytest.approx(min(forecast, max(1.0, 1.05 * measured)))
    assert slowed_down(other, 0.0) == pytest.approx(other)
    if serial > 0:
        assert slowed_down(other, serial) <= 1 / serial + 1e-9


def test_contention_of_two_cores_by_hand() -> None:
    serial = serial_share(5.5, 2.75 / 1.05)  # which noise may have made less
    assert serial == pytest.approx(2 / 9)
    assert slowed_down(6.65, serial) == pytest.approx(2.95, abs=0.01)  # and not 3.3
    assert serial_share(1.0, 0.9) == 0.0  # no gain was forecast: it can't be told
    assert serial_share(2.0, 1.95) == 0.0
