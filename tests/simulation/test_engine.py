"""Contention, arrivals, waits, refusals, turns."""

import json
from dataclasses import replace

import pytest
from shapes import PAGE, PEAK, budget, profile_of, triangle

from gpushare.scheduling.policies import POLICIES
from gpushare.simulation import Contention, SimulatedJob, from_profile, simulate
from gpushare.simulation.job import Variation, iterations_for, steps_for
from gpushare.simulation.report import build_report


def flat(name: str, pages: int, residue: int = 0, **rest: object) -> SimulatedJob:
    """Holds its pages for most of an iteration of a second."""
    fields = {"iterations": 10, "residue_bytes": residue * PAGE, **rest}
    return SimulatedJob(name, (pages * PAGE, residue * PAGE), (0.0, 0.9), 1.0, **fields)


def test_one_job_takes_what_it_takes_alone() -> None:
    outcome = simulate([flat("a", 10)], policy="zico", budget_bytes=100 * PAGE, contention=Contention(1))
    assert outcome.duration_s == pytest.approx(10)
    assert (outcome.stp, outcome.antt) == (pytest.approx(1), pytest.approx(1))
    assert outcome.nothing_waits


def test_cores_are_shared_out_once_more_are_wanted() -> None:
    jobs = [flat("a", 10, threads=2.0), flat("b", 10, threads=2.0)]
    for cores, slowdown in ((4, 1.0), (3, 4 / 3), (2, 2.0)):
        outcome = simulate(jobs, policy="unmanaged", budget_bytes=100 * PAGE, contention=Contention(cores))
        assert outcome.antt == pytest.approx(slowdown)


def test_a_pair_is_slower_by_its_factor_while_both_compute() -> None:
    jobs = [flat("a", 10), flat("b", 10, iterations=20)]
    contention = Contention(2, 1.0, {(0, 1): 1.25, (1, 0): 1.25})
    outcome = simulate(jobs, policy="unmanaged", budget_bytes=100 * PAGE, contention=contention)
    first, second = outcome.jobs
    assert first.end_s == pytest.approx(12.5)
    assert second.end_s == pytest.approx(12.5 + 10)


def test_a_job_that_arrives_later_begins_then() -> None:
    jobs = [flat("a", 10), flat("b", 10, arrival_s=3.5)]
    outcome = simulate(jobs, policy="zico", budget_bytes=100 * PAGE, contention=Contention(2))
    assert outcome.jobs[1].first_end_s == pytest.approx(4.5)
    assert outcome.jobs[1].end_s == pytest.approx(13.5)
    assert outcome.antt == pytest.approx(1)


def test_what_does_not_fit_beside_waits_for_the_end() -> None:
    keeper = flat("keeper", 80, residue=70)
    comer = flat("comer", 60)
    outcome = simulate([keeper, comer], policy="zico", budget_bytes=100 * PAGE, contention=Contention(2))
    assert outcome.all_ok and not outcome.all_run
    first, second = sorted(outcome.jobs, key=lambda job: job.end_s)
    assert first.waits_s == 0
    assert second.waits_s == pytest.approx(first.end_s)


def test_a_job_that_fails_gives_back_all_that_it_holds() -> None:
    failing, waiting = flat("failing", 80, fails_at=(2, 1)), flat("waiting", 80, iterations=3)
    outcome = simulate(
        [failing, waiting], policy="temporal", budget_bytes=100 * PAGE, contention=Contention(2)
    )
    failed, other = outcome.jobs
    assert (failed.status, failed.iterations, other.status) == ("failed", 2, "ok")
    assert not outcome.all_ok and failed.slowdown is None
    # Until it gives back, the other one waits; it fails before the last tenth of an iteration.
    assert outcome.duration_s == pytest.approx(2.9 + 3)


def test_a_job_without_a_profile_is_measured_alone() -> None:
    jobs = [flat(name, 10, has_profile=False) for name in ("a", "b")]
    outcome = simulate(jobs, policy="greedy", budget_bytes=100 * PAGE, contention=Contention(2))
    assert outcome.all_ok
    assert outcome.duration_s == pytest.approx(4 + 8)  # two of each alone, the rest side by side


@pytest.mark.parametrize("policy", sorted(POLICIES))
def test_what_can_never_fit_is_refused_with_figures(policy: str) -> None:
    jobs = [flat("fits", 50), flat("never", 120)]
    outcome = simulate(jobs, policy=policy, budget_bytes=100 * PAGE, contention=Contention(2))
    fits, never = outcome.jobs
    assert fits.status == "ok"
    assert never.status != "ok" and never.message
    assert "asked for 240.0 MiB" in never.message and "the budget is 200.0 MiB" in never.message


def test_jobs_that_lose_together_come_to_take_turns() -> None:
    jobs = [triangle("a", iterations=60), triangle("b", iterations=60)]
    outcome = simulate(jobs, policy="zico", budget_bytes=budget(2), contention=Contention(2, 2.5))
    assert outcome.turns_s > 0
    together = simulate(jobs, policy="unmanaged", budget_bytes=budget(2), contention=Contention(2, 2.5))
    assert outcome.duration_s < together.duration_s


def test_the_timeline_adds_up() -> None:
    jobs = [triangle("a", iterations=3), triangle("b", iterations=3)]
    outcome = simulate(jobs, policy="zico", budget_bytes=budget(1.2), contention=Contention(2))
    held = [0, 0]
    most = 0
    for before, event in zip((None, *outcome.timeline), outcome.timeline, strict=False):
        assert before is None or event.time_s >= before.time_s
        held[event.index] = event.held_bytes
        most = max(most, sum(held))
    assert held == [0, 0]
    assert most == outcome.pool_peak_bytes <= budget(1.2)


def test_an_iteration_beyond_its_curve_is_an_overrun() -> None:
    def sometimes(iteration: int) -> Variation:
        return Variation(held=1.1, time=1.5) if iteration % 5 == 4 else Variation()

    jobs = [triangle("a", vary=sometimes), triangle("b", vary=sometimes)]
    outcome = simulate(jobs, policy="zico", budget_bytes=budget(1.3), contention=Contention(2))
    assert outcome.all_ok
    assert sum(j.overruns for j in outcome.jobs) > 0
    assert outcome.jobs[0].solo_s == pytest.approx(24 + 6 * 1.5)


def test_a_profile_becomes_a_job_of_the_same_peak_and_time() -> None:
    profile = profile_of("a")
    job = from_profile(profile, "a", iterations=3, steps=16)
    assert len(job.held_bytes) <= 16
    assert job.peak_bytes == profile.peak_held_bytes == PEAK * PAGE
    assert job.iteration_s == profile.iteration_s


def test_iterations_are_as_much_longer_as_the_profile_has_seen() -> None:
    profile = replace(profile_of("a"), spread=(0.9, 1.0, 1.1, 1.4))
    job, other = (from_profile(profile, name, iterations=40) for name in "ab")
    times = [job.vary(i).time for i in range(40)]
    assert {time: times.count(time) for time in set(times)} == dict.fromkeys(profile.spread, 10)
    assert times == [
        from_profile(profile, "a", iterations=40).vary(i).time for i in range(40)
    ]  # as often as asked
    assert times != [other.vary(i).time for i in range(40)]
    assert job.mean_iteration_s == pytest.approx(profile.mean_iteration_s) == pytest.approx(1.1)
    outcome = simulate([job], policy="zico", budget_bytes=budget(2), contention=Contention(1))
    assert outcome.duration_s == pytest.approx(44)


def test_iterations_take_about_the_same_time_and_events_are_bounded() -> None:
    counts = iterations_for([1.0, 0.4, 0.0001], 30)
    assert counts == [30, 75, 3000]
    assert 8 <= steps_for(counts) < 96 == steps_for([30, 75])


def test_a_plan_has_all_figures_and_is_plain_data() -> None:
    jobs = [triangle("a", iterations=4), triangle("b", iterations=4, up=30, down=60)]
    report = build_report(
        jobs, policies=tuple(POLICIES), budget_bytes=budget(1.3), page_bytes=PAGE, contention=Contention(2)
    )
    assert json.loads(json.dumps(report)) == report
    assert set(report["policies"]) == set(POLICIES)
    zico, turns = report["policies"]["zico"], report["policies"]["temporal"]
    assert zico["stp"] > turns["stp"] == pytest.approx(1)
    assert zico["pool_peak_bytes"] <= report["budget_bytes"] == budget(1.3)
    much = {"policies": ["zico"], "page_bytes": PAGE, "contention": Contention(2)}
    enough, more = (build_report(jobs, budget_bytes=budget(n), **much) for n in (4, 4000))
    assert more["policies"]["zico"]["duration_s"] == enough["policies"]["zico"]["duration_s"]
