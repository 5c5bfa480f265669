"""`auto` against the fixed policies, in runs of several hundred short iterations."""

from dataclasses import replace

import pytest
from shapes import budget, triangle

from gpushare.simulation import Contention, Outcome, SimulatedJob, simulate

FIXED = ("temporal", "zico", "waterwave")


def short(name: str, iteration_s: float, count: int, *, up: int = 6, down: int = 12) -> SimulatedJob:
    job = triangle(name, up=up, down=down, iterations=count)
    times = tuple(t * iteration_s for t in job.time_s)
    return replace(job, time_s=times, iteration_s=iteration_s)


def run(jobs: list[SimulatedJob], policy: str, peaks: float, contention: Contention) -> Outcome:
    return simulate(jobs, policy=policy, budget_bytes=budget(peaks), contention=contention, record=False)


@pytest.mark.parametrize(
    ("jobs", "peaks", "factor"),
    [
        (2, 1.3, 1.0),
        (2, 1.05, 1.3),
        (2, 2.0, 1.0),
        (2, 2.0, 2.4),  # all fits, and sharing loses
        (2, 1.3, 2.6),
        (4, 1.6, 1.0),
        (4, 1.6, 1.4),
    ],
)
def test_it_is_nearly_as_good_as_the_best_fixed_policy(jobs: int, peaks: float, factor: float) -> None:
    made = [short(f"job {i}", 0.05, 500) for i in range(jobs)]
    contention = Contention(64, factor)
    took = {policy: run(made, policy, peaks, contention).duration_s for policy in (*FIXED, "auto")}
    assert took["auto"] <= min(took[policy] for policy in FIXED) / 0.95, took
    assert took["auto"] <= took["temporal"] / 0.98, took


def test_turns_are_found_within_a_second_where_sharing_clearly_loses() -> None:
    made = [short("a", 0.02, 500), short("b", 0.03, 400)]
    outcome = run(made, "auto", 2.0, Contention(64, 3.0))
    assert outcome.modes_s["zico"] < 1 and set(outcome.modes_s) <= {"zico", "temporal"}
    assert outcome.turns_s > 0.95 * outcome.window_s


@pytest.mark.parametrize("policy", ["zico", "waterwave", "auto"])
@pytest.mark.parametrize("solo_s", [(0.05, 0.05, 0.05), (0.02, 0.03, 0.1), (0.1, 0.1, 0.02)])
def test_two_of_three_that_slow_only_each_other_down_take_turns(
    policy: str, solo_s: tuple[float, float, float]
) -> None:
    made = [short(f"job {i}", s, round(20 / s)) for i, s in enumerate(solo_s)]
    contention = Contention(64, 1.0, {(0, 1): 4.0, (1, 0): 4.0})
    outcome = run(made, policy, 3.0, contention)
    assert outcome.modes_s["groups"] > 0.8 * outcome.window_s
    # All the time of the first two, one after the other, and the third beside them: 2/3 of the whole.
    assert outcome.over_serial is not None and outcome.over_serial < 0.72
    shared = simulate(made, policy="greedy", budget_bytes=budget(3.0), contention=contention, record=False)
    assert shared.over_serial is not None and shared.over_serial > 1.2


def test_modes_take_up_the_time_in_which_two_jobs_were_there() -> None:
    made = [short("a", 0.05, 100), short("b", 0.05, 200)]
    outcome = run(made, "auto", 1.3, Contention(64))
    ends = sorted(job.end_s for job in outcome.jobs)
    assert sum(outcome.modes_s.values()) == pytest.approx(ends[0], abs=0.6)
