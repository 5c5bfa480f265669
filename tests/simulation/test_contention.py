"""How much slower jobs are beside each other."""

from dataclasses import replace

import pytest

from gpushare.profiles import Profile
from gpushare.simulation.contention import Contention, forecast_factor

JOB = Profile("x", "2", "cpu", 1, 0, 0, 0, 1, 1, 0, 0.1, (1,), (0.0,))


def test_cores_are_shared_out_and_what_is_felt_adds_up() -> None:
    contention = Contention(2, 1.0, {(0, 1): 1.5, (1, 0): 1.1, (0, 2): 1.25})
    threads = [1.0, 1.0, 2.0]
    assert contention.pace(0, [0], threads) == 1
    assert contention.pace(0, [0, 1], threads) == pytest.approx(1 / 1.5)
    assert contention.pace(1, [0, 1], threads) == pytest.approx(1 / 1.1)
    assert contention.pace(0, [0, 1, 2], threads) == pytest.approx(0.5 / 1.75)
    assert contention.pace(2, [0, 1, 2], threads) == pytest.approx(0.5)


def test_two_that_hold_the_gil_all_the_time_take_turns() -> None:
    holds, hardly = replace(JOB, gil_share=1.0), replace(JOB, gil_share=0.1)
    assert forecast_factor(holds, holds) == 2
    assert forecast_factor(hardly, holds) == forecast_factor(holds, hardly) == pytest.approx(1.1)


def test_who_feels_and_who_presses_are_two_things() -> None:
    copies = replace(JOB, sensitivity=0.8, pressure=1.0)
    computes = replace(JOB, sensitivity=0.3, pressure=0.05)
    assert forecast_factor(copies, computes) == pytest.approx(1.04)
    assert forecast_factor(computes, copies) == pytest.approx(1.3)
    both = replace(computes, gil_share=0.5)
    assert forecast_factor(both, replace(copies, gil_share=0.5)) == pytest.approx(1.55)


def test_what_was_not_measured_of_both_is_not_known() -> None:
    assert forecast_factor(JOB, replace(JOB, gil_share=1.0, pressure=1.0)) is None
    assert forecast_factor(replace(JOB, gil_share=0.5), replace(JOB, gil_share=0.5, pressure=1.0)) == 1.25
