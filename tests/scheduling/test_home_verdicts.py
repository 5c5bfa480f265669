"""Which mode is in force after a while, for jobs whose true yields are known."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from measured_jobs import Jobs, rates, solo

from gpushare.scheduling.efficiency import efficiency
from gpushare.scheduling.snapshot import TURNS
from gpushare.scheduling.trials import TRIALS_SHARE


@given(sharing=st.floats(0.3, 0.95), solo_s=solo)
def test_what_loses_together_takes_turns(sharing: float, solo_s: list[float]) -> None:
    jobs = Jobs(solo_s, {"zico": 2.0}, zico=sharing)
    jobs.run(30)
    assert jobs.home == TURNS
    before_s, worked_s = jobs.spent_s[TURNS], jobs.work_s
    jobs.run(1000)
    # Now and then sharing is tried again. Of what is nearly as good trials may be long: they lose less.
    assert jobs.spent_s[TURNS] - before_s > 900
    assert jobs.work_s - worked_s >= (1 - TRIALS_SHARE) * 1000


@given(sharing=st.floats(0.3, 0.8))
def test_short_iterations_that_lose_together_lose_little(sharing: float) -> None:
    jobs = Jobs([0.01, 0.02], {"zico": 2.0, "waterwave": 1.9}, zico=sharing, waterwave=sharing)
    jobs.run(5)
    assert set(jobs.spent_s) == {"zico", TURNS}  # that one loses says enough of the other
    jobs.run(15)
    assert jobs.home == TURNS
    assert jobs.work_s >= 0.98 * 20


@given(sharing=st.floats(1.26, 2.0))
def test_what_gains_much_is_never_put_to_the_test(sharing: float) -> None:
    jobs = Jobs([0.01, 0.3], zico=sharing)
    jobs.run(500)
    assert set(jobs.spent_s) == {"zico"} and set(jobs.pace.yields.modes) == {"zico"}


def test_a_small_gain_is_kept_after_a_trial() -> None:
    jobs = Jobs([0.01, 0.02], zico=1.05)
    jobs.run(1000)
    assert jobs.home == "zico"
    assert 0 < jobs.spent_s[TURNS] < 50


def test_where_nothing_overlaps_the_jobs_take_turns_at_once() -> None:
    jobs = Jobs([0.3, 0.3], {"zico": 1.01, "waterwave": 1.0}, zico=1.0, waterwave=1.0)
    jobs.step()
    assert jobs.pace.mode == TURNS


@given(zico=rates, waterwave=rates, guess=st.tuples(st.floats(1.1, 3), st.floats(1.1, 3)), solo_s=solo)
@settings(max_examples=60, deadline=None)
def test_after_a_while_the_best_mode_is_in_force(
    zico: float, waterwave: float, guess: tuple[float, float], solo_s: list[float]
) -> None:
    jobs = Jobs(solo_s, dict(zip(("zico", "waterwave"), guess, strict=True)), zico=zico, waterwave=waterwave)
    jobs.run(6000)
    jobs.spent_s.clear()
    jobs.run(2000)
    best = max(jobs.yields.values())
    mean = sum(jobs.yields[mode] * s for mode, s in jobs.spent_s.items()) / sum(jobs.spent_s.values())
    assert mean >= 0.96 * best


@given(zico=rates, waterwave=rates, solo_s=solo)
@settings(max_examples=40, deadline=None)
def test_modes_do_not_flap(zico: float, waterwave: float, solo_s: list[float]) -> None:
    jobs = Jobs(solo_s, {"zico": 2.0, "waterwave": 1.9}, zico=zico, waterwave=waterwave)
    jobs.run(4000)
    # Windows last two seconds and more; up to three trials switch twice each and double the stay, to 256 windows.
    assert jobs.switches <= 3 * 2 * (2 + 6 + 4000 / (256 * 2)) + 4


def test_of_two_modes_that_do_as_much_the_more_even_one_is_better() -> None:
    jobs = Jobs([0.02, 0.1], {"zico": 1.9, "waterwave": 1.8}, zico=1.44, waterwave=1.42)
    jobs.parts["zico"] = 0.75  # the first one as if alone, the second one at a third
    jobs.run(120)
    assert jobs.home == "waterwave"
    told = jobs.pace.yields.to_json()["modes"]
    assert told["zico"]["yield"] == pytest.approx(1.44, abs=0.02)
    assert told["zico"]["efficiency"] == pytest.approx(efficiency([1.08, 0.36]), abs=0.02)
    assert told["waterwave"]["efficiency"] == pytest.approx(1.42, abs=0.02)


@given(turns=st.floats(0.6, 0.95), sharing=st.floats(0.6, 0.95))
def test_a_belief_that_is_wrong_is_given_up(turns: float, sharing: float) -> None:
    """Solo times that are told too short make every yield look small, that of taking turns too."""
    jobs = Jobs([0.02, 0.02], {"zico": 2.0}, zico=sharing)
    jobs.yields[TURNS] = turns
    jobs.run(120)
    worse, better = sorted((turns, sharing))
    if worse < 0.95 * better:
        assert jobs.yields[jobs.home or ""] == better


def test_slow_first_moments_do_not_decide() -> None:
    jobs = Jobs([0.1, 0.1], {"zico": 1.6, "waterwave": 1.59}, zico=1.35, waterwave=1.28)
    jobs.speed = 0.5
    jobs.run(0.8)
    jobs.speed = 1.0
    jobs.run(60)
    assert TURNS not in jobs.spent_s


@pytest.mark.parametrize("seconds", [1.7, 2.3, 3.1, 10, 40])
@pytest.mark.parametrize("begin_s", [20, 20.74, 21.11])
@pytest.mark.parametrize(("zico", "waterwave"), [(1.2, 1.15), (1.2, 0.9), (1.35, 1.0)])
@pytest.mark.parametrize("speed", [0.4, 0.6])
def test_a_machine_that_slows_down_slows_down_all_modes(
    zico: float, waterwave: float, begin_s: float, seconds: float, speed: float
) -> None:
    jobs = Jobs([0.1, 0.1], {"zico": 1.6, "waterwave": 1.59}, zico=zico, waterwave=waterwave)
    jobs.run(begin_s)
    jobs.speed = speed
    jobs.run(seconds)
    jobs.speed = 1.0
    before_s = dict(jobs.spent_s)
    jobs.run(60)
    worse_s = {
        mode: s - before_s.get(mode, 0) for mode, s in jobs.spent_s.items() if jobs.yields[mode] < 0.95 * zico
    }
    assert sum(worse_s.values()) < 10


@pytest.mark.parametrize("better", [1.2, 1.4, 1.8])
@pytest.mark.parametrize(("solo_s", "within_s"), [(0.1, 20), (1.0, 80)])
@pytest.mark.parametrize("at_s", [10, 60, 300])
def test_a_mode_that_becomes_worse_by_itself_is_left(
    better: float, solo_s: float, within_s: float, at_s: float
) -> None:
    jobs = Jobs([solo_s, solo_s], {"zico": 2.0}, zico=better)
    jobs.run(at_s)
    jobs.yields["zico"] = 0.6
    jobs.run(within_s)
    assert jobs.pace.mode == TURNS


def test_all_may_stand_still_for_a_while() -> None:
    jobs = Jobs([0.1, 0.1], {"zico": 1.6, "waterwave": 1.59}, zico=1.6, waterwave=1.3)
    jobs.run(20.37)
    jobs.speed = 0.0
    jobs.run(3.1)
    jobs.speed = 1.0
    jobs.run(60)
    assert jobs.spent_s.get(TURNS, 0) < 3


def test_turns_are_never_believed_to_be_worth_more_than_one_job_alone() -> None:
    jobs = Jobs([0.1, 0.1], {"zico": 1.6}, zico=1.6)
    jobs.speed = 0.62  # the first iterations
    jobs.run(2.6)
    jobs.speed = 1.0
    jobs.run(30)
    jobs.phase, jobs.yields["zico"] = (1,), 1.3
    jobs.run(60)
    assert TURNS not in jobs.spent_s
