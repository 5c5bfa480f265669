"""Modes when jobs come, go, load, and change what they do."""

import pytest
from measured_jobs import Jobs

from gpushare.scheduling.pace import Pace
from gpushare.scheduling.progress import Progress
from gpushare.scheduling.snapshot import TURNS
from gpushare.scheduling.trials import CLOSE_LOOK_S, LOOK_S


def test_what_the_jobs_do_may_change() -> None:
    jobs = Jobs([0.01, 0.02], {"zico": 2.0}, zico=0.8)
    jobs.run(60)
    assert jobs.home == TURNS
    jobs.yields["zico"] = 1.4
    jobs.run(600)
    assert jobs.home == "zico"
    jobs.yields["zico"] = 0.6
    jobs.run(30)  # what is in force is watched always
    assert jobs.home == TURNS


def test_another_phase_makes_beliefs_of_what_was_measured() -> None:
    jobs = Jobs([0.01, 0.02], {"zico": 2.0}, zico=0.8)
    jobs.run(60)
    jobs.phase = (1,)
    jobs.step()
    assert jobs.pace.mode == TURNS and not jobs.pace.settled
    jobs.yields["zico"] = 1.5
    jobs.run(120)
    assert jobs.home == "zico"


def test_a_job_that_comes_or_goes_begins_anew() -> None:
    jobs = Jobs([0.01, 0.02, 0.03], {"zico": 2.0}, zico=0.8)
    jobs.run(60)
    assert jobs.home == TURNS
    del jobs.solo_s[1]
    jobs.step()
    assert jobs.pace.mode == "zico"
    del jobs.solo_s[2]
    jobs.run(100)
    assert jobs.pace.mode is None
    told = jobs.pace.yields
    assert told.turns_s == pytest.approx(jobs.spent_s[TURNS], abs=LOOK_S)
    assert told.modes["zico"].measured == pytest.approx(0.8)
    as_json = told.to_json()
    assert as_json["solo_s"] == {"1": 0.01, "2": 0.02, "3": 0.03}
    assert as_json["yield_side_by_side"] == pytest.approx(0.8)
    assert as_json["modes"][TURNS]["yield"] == as_json["yield_in_turns"] == pytest.approx(1.0)


def test_jobs_that_are_still_loading_are_not_there() -> None:
    pace, loading = Pace(), Progress(0.0, 0.003)
    forecast = {"zico": 2.0, TURNS: 1.0}
    for look in range(100):
        assert (
            pace.look(look * LOOK_S, {1: loading, 2: Progress(100.0 * look, 0.003)}, lambda _: forecast)
            is None
        )
    now_s = 100 * LOOK_S
    for _ in range(100):  # both at once, as fast as alone
        done = (now_s - 99 * LOOK_S) / 0.003
        jobs = {1: Progress(done, 0.003), 2: Progress(10_000 + done, 0.003)}
        assert pace.look(now_s, jobs, lambda _: forecast) == "zico"
        now_s += pace.look_again_s
    assert pace.yields.modes["zico"].measured == pytest.approx(2, rel=0.01)


def test_it_looks_closely_only_while_a_verdict_is_near() -> None:
    jobs = Jobs([0.01, 0.02], zico=1.5)
    jobs.step()
    assert jobs.pace.look_again_s == CLOSE_LOOK_S
    jobs.run(10)
    assert jobs.pace.look_again_s == LOOK_S
