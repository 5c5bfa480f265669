"""What trials cost, and how long they last, for jobs whose true yields are known."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from measured_jobs import Jobs, rates

from gpushare.scheduling.snapshot import TURNS
from gpushare.scheduling.trials import ALLOWED_LATE_S, TRIALS_SHARE

guesses = st.tuples(st.floats(0.5, 3), st.floats(0.5, 3))
any_solo = st.lists(st.floats(0.001, 4), min_size=2, max_size=4)


def jobs_of(solo_s: list[float], guess: tuple[float, float], rate: list[float]) -> Jobs:
    zico, waterwave, turns = rate
    forecast = dict(zip(("zico", "waterwave"), guess, strict=True))
    jobs = Jobs(solo_s, forecast, zico=zico, waterwave=waterwave)
    jobs.yields[TURNS] = turns
    return jobs


@given(rate=st.lists(rates, min_size=3, max_size=3), guess=guesses, solo_s=any_solo)
@settings(max_examples=80, deadline=None)
def test_trials_lose_at_most_one_percent_at_every_moment(
    rate: list[float], guess: tuple[float, float], solo_s: list[float]
) -> None:
    jobs = jobs_of(solo_s, guess, rate)
    while jobs.now_s < 2000:
        jobs.step()
        assert jobs.lost_on_trial_s <= TRIALS_SHARE * jobs.shared_s + 1e-9


lateness = st.lists(st.floats(0.0, 0.3), min_size=1, max_size=20)


@given(rate=st.lists(rates, min_size=3, max_size=3), guess=guesses, solo_s=any_solo, late_s=lateness)
@settings(max_examples=80, deadline=None)
def test_looks_that_come_late_lose_no_more_than_the_latest_one_was_late(
    rate: list[float], guess: tuple[float, float], solo_s: list[float], late_s: list[float]
) -> None:
    jobs = jobs_of(solo_s, guess, rate)
    jobs.late_s = itertools.cycle(late_s)
    while jobs.now_s < 2000:
        jobs.step()
        later_than_known_s = max(0.0, max(late_s) - ALLOWED_LATE_S)
        assert jobs.lost_on_trial_s <= TRIALS_SHARE * jobs.shared_s + later_than_known_s + 1e-9


@given(
    rate=st.lists(rates, min_size=3, max_size=3),
    guess=guesses,
    solo_s=st.lists(st.floats(0.001, 0.5), min_size=3, max_size=5),
    leaves_s=st.lists(st.floats(1.0, 300.0), min_size=2, max_size=4),
)
@settings(max_examples=80, deadline=None)
def test_nor_do_trials_lose_more_where_jobs_end_in_them(
    rate: list[float], guess: tuple[float, float], solo_s: list[float], leaves_s: list[float]
) -> None:
    jobs = jobs_of(solo_s, guess, rate)
    for leaves in sorted(leaves_s):
        while jobs.now_s < leaves or (jobs.now_s < 2 * leaves and not jobs.pace.on_trial):
            jobs.step()
        if len(jobs.solo_s) > 1:
            del jobs.solo_s[max(jobs.solo_s)]
        jobs.step()
        assert jobs.lost_on_trial_s <= TRIALS_SHARE * jobs.shared_s + 1e-9


@given(
    rate=st.lists(rates, min_size=3, max_size=3),
    guess=guesses,
    solo_s=any_solo,
    changes=st.lists(st.tuples(st.sampled_from(("zico", "waterwave", TURNS, "phase")), rates), max_size=5),
)
@settings(max_examples=80, deadline=None)
def test_also_when_yields_change_no_trial_exceeds_what_was_measured_to_be_left(
    rate: list[float], guess: tuple[float, float], solo_s: list[float], changes: list[tuple[str, float]]
) -> None:
    jobs = jobs_of(solo_s, guess, rate)
    for what, new in [*changes, ("", 0.0)]:
        end_s = jobs.now_s + 300
        while jobs.now_s < end_s:
            tried, lost_s = jobs.pace.on_trial, jobs.pace.yields.lost_s
            jobs.step()
            if tried and jobs.pace.yields.lost_s > lost_s:
                assert jobs.pace.yields.lost_s <= TRIALS_SHARE * jobs.shared_s + 1e-9
        if what == "phase":
            jobs.phase = (*jobs.phase, 1)
        elif what:
            jobs.yields[what] = new


def trials(jobs: Jobs, most: int) -> list[float]:
    """How long each trial of the other sharing mode lasts."""
    found: list[float] = []
    while len(found) < most:
        assert jobs.now_s < 1000
        begun_s = jobs.now_s
        while jobs.pace.on_trial and jobs.pace.mode == "waterwave":
            jobs.step()
        if jobs.now_s > begun_s:
            found.append(jobs.now_s - begun_s)
        jobs.step()
    return found


@pytest.mark.parametrize(("close", "least_s", "most_s"), [(1.2, 2.0, 2.6), (0.8, 0.2, 1.0)])
def test_only_what_is_clearly_worse_is_not_measured_to_its_end(
    close: float, least_s: float, most_s: float
) -> None:
    jobs = Jobs([0.01, 0.02], {"zico": 1.5, "waterwave": 1.4}, zico=1.3, waterwave=close)
    (first_s,) = trials(jobs, 1)
    assert least_s <= first_s <= most_s and jobs.home == "zico"


def test_a_close_mode_is_judged_by_three_trials() -> None:
    jobs = Jobs([0.01, 0.02], {"zico": 1.5, "waterwave": 1.4}, zico=1.3, waterwave=1.2)
    trials(jobs, 1)
    jobs.yields["waterwave"] = 1.35  # by itself this is better by more than the margin
    trials(jobs, 2)
    assert jobs.home == "zico"  # on the mean it is not
    jobs.yields["waterwave"] = 1.6
    jobs.run(500)
    assert jobs.home == "waterwave"
