"""How much slower jobs are beside each other."""

from dataclasses import replace

import pytest

from gpushare.profiles import Profile
from gpushare.simulation.contention import Contention, Felt, forecast, rest_of

JOB = Profile("x", "2", "cpu", 1, 0, 0, 0, 1, 1, 0, 0.1, (1,), (0.0,))


def test_cores_are_shared_out_and_what_is_felt_adds_up() -> None:
    contention = Contention(2, 1.0, {(0, 1): 1.5, (1, 0): 1.1, (0, 2): 1.25})
    threads = [1.0, 1.0, 2.0]
    assert contention.pace(0, [0], threads) == 1
    assert contention.pace(0, [0, 1], threads) == pytest.approx(1 / 1.5)
    assert contention.pace(1, [0, 1], threads) == pytest.approx(1 / 1.1)
    assert contention.pace(0, [0, 1, 2], threads) == pytest.approx(0.5 / 1.75)
    assert contention.pace(2, [0, 1, 2], threads) == pytest.approx(0.5)


def test_who_waits_for_the_gil_wants_no_core() -> None:
    pairs = [(i, j) for i in range(4) for j in range(4) if i != j]
    contention = Contention(2, waits=dict.fromkeys(pairs, 1.0))
    for count in (1, 2, 3, 4):  # all of them together do as much as one
        assert contention.pace(0, range(count), [1.0] * 4) == pytest.approx(1 / count)
    assert Contention(1, waits=dict.fromkeys(pairs, 1.0)).pace(0, [0, 1], [1.0, 1.0]) == pytest.approx(0.5)
    part = Contention(1, waits=dict.fromkeys(pairs, 0.25))  # the core is short first
    assert part.pace(0, [0, 1], [1.0, 1.0]) == pytest.approx(0.5)


def felt(job: Profile, beside: Profile) -> Felt:
    found = forecast(job, beside)
    assert found is not None
    return found


def test_two_that_hold_the_gil_all_the_time_take_turns() -> None:
    holds, hardly = replace(JOB, gil_share=1.0), replace(JOB, gil_share=0.1)
    assert felt(holds, holds) == Felt(1, 0) and felt(holds, holds).factor == 2
    assert felt(hardly, holds) == felt(holds, hardly) == Felt(pytest.approx(0.1), 0)


def test_who_feels_and_who_presses_are_two_things() -> None:
    copies = replace(JOB, sensitivity=0.8, pressure=1.0)
    computes = replace(JOB, sensitivity=0.3, pressure=0.05)
    assert felt(copies, computes).factor == pytest.approx(1.04)
    assert felt(computes, copies).factor == pytest.approx(1.3)
    both = replace(computes, gil_share=0.5)
    assert felt(both, replace(copies, gil_share=0.5)).factor == pytest.approx(1.55)


def test_what_was_not_measured_of_both_is_not_known() -> None:
    assert forecast(JOB, replace(JOB, gil_share=1.0, pressure=1.0)) is None
    assert felt(replace(JOB, gil_share=0.5), replace(JOB, gil_share=0.5, pressure=1.0)).factor == 1.25


def test_the_rest_is_what_a_factor_is_above_the_forecast() -> None:
    copies, computes = (
        replace(JOB, sensitivity=0.8, pressure=1.0),
        replace(JOB, sensitivity=0.3, pressure=0.05),
    )
    both = [felt(copies, computes), felt(computes, copies)]
    assert rest_of(1.27, both) == pytest.approx(0.1)
    with_rest = [replace(f, rest=rest_of(1.27, both)) for f in both]
    assert [f.factor for f in with_rest] == [pytest.approx(1.14), pytest.approx(1.4)]
    assert rest_of(1.27, with_rest) == pytest.approx(0.0)
    assert Felt(0.25, 0.1, -0.5).factor == 1.25  # never faster than alone, and the GIL is waited for
