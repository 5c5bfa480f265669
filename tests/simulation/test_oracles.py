"""Schedules whose figures follow from the shapes alone."""

import itertools
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from shapes import HEADROOM, PAGE, PEAK, budget, triangle

from gpushare.native.simulation import is_safe
from gpushare.scheduling.policies import POLICIES
from gpushare.scheduling.snapshot import IterationCurve, JobState, Snapshot
from gpushare.simulation import Contention, Outcome, SimulatedJob, simulate

FREE = Contention(cores=64)


def run(jobs: list[SimulatedJob], budget_bytes: int, policy: str = "zico") -> Outcome:
    outcome = simulate(jobs, policy=policy, budget_bytes=budget_bytes, contention=FREE)
    assert outcome.pool_peak_bytes <= budget_bytes
    return outcome


def pair(up: int, down: int) -> list[SimulatedJob]:
    return [triangle("a", up=up, down=down), triangle("b", up=up, down=down)]


def test_symmetric_triangles_overlap_fully_at_one_peak() -> None:
    outcome = run(pair(40, 40), budget(1.0))
    assert outcome.stp == pytest.approx(1 + 29.5 / 30, abs=0.01)  # the second job is half an iteration late
    assert [j.time_shift_s for j in outcome.jobs] == pytest.approx([0.5, 0.5], abs=0.03)
    assert outcome.pool_peak_bytes == PEAK * PAGE


def test_triangles_of_one_to_two_overlap_fully_at_one_and_a_quarter() -> None:
    outcome = run(pair(30, 60), budget(1.25))
    assert outcome.stp == pytest.approx(1 + 29.5 / 30, abs=0.02)
    below = run(pair(30, 60), budget(1.15))
    assert below.stp < 1.8


def test_in_turns_the_time_is_the_sum() -> None:
    outcome = run(pair(30, 60), budget(1.0), "temporal")
    assert outcome.over_serial == pytest.approx(1)
    assert outcome.stp == pytest.approx(1)
    assert outcome.pool_peak_bytes == PEAK * PAGE


def test_at_the_sum_of_peaks_nothing_waits_and_two_run_as_one() -> None:
    outcome = run(pair(30, 60), budget(2.0))
    assert outcome.nothing_waits
    assert outcome.stp == pytest.approx(2)
    assert outcome.antt == pytest.approx(1)
    assert outcome.over_serial == pytest.approx(0.5)


def test_without_coordination_the_second_peak_is_out_of_memory() -> None:
    outcome = run(pair(30, 60), budget(1.9), "unmanaged")
    assert sorted(j.status for j in outcome.jobs) == ["ok", "out of memory"]
    assert outcome.over_serial is None
    told = next(j.message for j in outcome.jobs if j.message)
    assert "the budget is 3804.0 MiB" in told
    assert run(pair(30, 60), budget(2.0), "unmanaged").stp == pytest.approx(2)


@pytest.mark.parametrize("policy", sorted(POLICIES))
@pytest.mark.parametrize("shapes", [(40, 40), (30, 60), (60, 30)])
def test_throughput_never_falls_when_the_budget_grows(policy: str, shapes: tuple[int, int]) -> None:
    found = [run(pair(*shapes), budget(1 + i / 12), policy).stp for i in range(13)]
    for less, more in itertools.pairwise(found):
        assert more >= less - 0.01 * less, found
    assert found[-1] > found[0] or policy == "temporal"


blocks = st.lists(st.integers(0, 9), min_size=1, max_size=6)


def steps(held: list[int]) -> IterationCurve:
    times = tuple(float(i) for i in range(len(held)))
    return IterationCurve(tuple(range(len(held))), tuple(held), times, float(len(held)), 0, len(held))


def fits_by_counting(running: list[int], newcomer: list[int], shift: int, room: int) -> bool:
    """Second by second, while the running iteration lasts. Which of two things that happen at one moment is the
    first can't be told, so both sides of a moment count."""
    beside = [*newcomer, *[0] * (len(running) + 1)]
    for at in range(shift, len(running)):
        if running[at] + max(beside[at - shift], beside[at - shift + 1]) > room:
            return False
    return max(newcomer) <= room


def curve_of(job: SimulatedJob) -> IterationCurve:
    ordinals = tuple(range(len(job.held_bytes)))
    return IterationCurve(
        ordinals, job.held_bytes, job.time_s, job.iteration_s, job.residue_bytes, len(ordinals)
    )


@given(running=blocks, newcomer=blocks, room=st.integers(0, 18))
def test_time_shifts_are_the_smallest_by_counting(running: list[int], newcomer: list[int], room: int) -> None:
    jobs = (JobState(1, steps(running)), JobState(2, steps(newcomer)))
    (permit,) = (p for p in POLICIES["zico"](Snapshot(room, jobs)) if p.account == 2)
    counted = [s for s in range(len(running)) if fits_by_counting(running, newcomer, s, room)]
    if not counted and max(newcomer) <= room and running[-1] + newcomer[0] <= room:
        counted = [len(running)]  # within the last second: the newcomer's second one is after it
    if counted:
        assert permit.allocations == 0 and permit.by_forecast
        assert counted[0] - 1 < permit.shift_s <= counted[0]
    else:
        assert permit.allocations is None


@settings(max_examples=20, deadline=None)
@given(peaks=st.tuples(st.integers(20, 200), st.integers(20, 200)), share=st.floats(0.05, 1))
def test_the_pool_never_holds_more_than_the_budget(peaks: tuple[int, int], share: float) -> None:
    jobs = [triangle("a", peak=peaks[0], up=5, down=9), triangle("b", peak=peaks[1], up=9, down=5)]
    pages = max(peaks) + HEADROOM + round(min(peaks) * share)
    outcome = run(jobs, pages * PAGE)
    assert outcome.all_ok
    assert outcome.stp >= 1


small = st.integers(0, 5)
opens = st.builds(lambda held, more, residue: (held, max(held + more, residue), residue), small, small, small)


def all_can_end(open_iterations: list[tuple[int, int, int]], available: int) -> bool:
    """By search: each takes its pages one at a time, in any order among them, and may end when it has its claim."""
    budget = available + sum(held for held, _, _ in open_iterations)
    states: list[tuple[int | None, ...]] = [tuple(held for held, _, _ in open_iterations)]
    known = set(states)
    for state in states:  # those found on the way too
        for i, (_, claim, _) in enumerate(open_iterations):
            if (pages := state[i]) is None:
                continue
            after = (*state[:i], pages + 1 if pages < claim else None, *state[i + 1 :])
            held = sum(
                residue if p is None else p for p, (_, _, residue) in zip(after, open_iterations, strict=True)
            )
            if held <= budget and after not in known:
                known.add(after)
                states.append(after)
    return (None,) * len(open_iterations) in known


@given(st.lists(opens, max_size=3), small)
def test_the_check_is_that_of_a_search(open_iterations: list[tuple[int, int, int]], available: int) -> None:
    assert is_safe(open_iterations, available) == all_can_end(open_iterations, available)


@pytest.mark.parametrize("policy", ["zico", "waterwave"])
@pytest.mark.parametrize("shape", [(40, 40), (30, 60)])
def test_planned_starts_pay(policy: str, shape: tuple[int, int]) -> None:
    four = [triangle(f"job {i}", up=shape[0], down=shape[1]) for i in range(4)]
    assert run(four, budget(1.6), policy).stp >= 1.5 * run(four, budget(1.6), "greedy").stp


@pytest.mark.parametrize(("jobs", "peaks", "least"), [(4, 1.6, 2.4), (8, 2.5, 3.4)])
@pytest.mark.parametrize("shape", [(40, 40), (30, 60)])
@pytest.mark.parametrize("policy", ["zico", "waterwave"])
def test_many_equal_jobs_do_not_stall(
    jobs: int, peaks: float, least: float, shape: tuple[int, int], policy: str
) -> None:
    equal = [triangle(f"job {i}", up=shape[0], down=shape[1]) for i in range(jobs)]
    outcome = run(equal, budget(peaks), policy)
    assert sum(job.memory_wait_s for job in outcome.jobs) < 0.01 * outcome.duration_s
    assert max(job.most_passed for job in outcome.jobs) == 1
    assert outcome.stp >= least
    shares = [job.work_s for job in outcome.jobs]
    assert max(shares) <= 1.2 * min(shares)


def flat(name: str) -> SimulatedJob:
    """It holds much from 0.2 to 0.65 of its iteration, and too much beside that until 0.87; nothing happens between."""
    held = (160, 210, 160, 140)
    return SimulatedJob(
        name=name,
        held_bytes=tuple(pages * PAGE for pages in held),
        time_s=(0.0, 0.2, 0.65, 0.87),
        iteration_s=1.0,
        residue_bytes=0,
        iterations=40,
    )


def test_a_shift_is_forecast_within_a_step() -> None:
    jobs = (JobState(1, curve_of(flat("a"))), JobState(2, curve_of(flat("b"))))
    for permit in POLICIES["zico"](Snapshot(360 * PAGE, jobs)):
        assert permit.allocations == 0 and permit.by_forecast
        assert permit.shift_s == pytest.approx(0.87 - 0.2, abs=0.01)


@pytest.mark.parametrize("policy", ["zico", "auto"])
def test_who_fits_only_within_the_last_step_of_another_takes_no_turns(policy: str) -> None:
    """They hold much from their middle to their end, and there is no step after that."""
    jobs = [replace(flat(name), held_bytes=(50 * PAGE, 200 * PAGE), time_s=(0.0, 0.5)) for name in ("a", "b")]
    outcome = run(jobs, (260 + HEADROOM) * PAGE, policy)
    assert outcome.stp > 1.9


@pytest.mark.parametrize("policy", ["zico", "waterwave"])
def test_a_start_comes_in_its_moment_though_nobody_frees_anything_then(policy: str) -> None:
    outcome = run([flat("a"), flat("b")], (360 + HEADROOM) * PAGE, policy)
    assert outcome.stp == pytest.approx(1 / (0.87 - 0.2), abs=0.06)
    assert sum(job.memory_wait_s for job in outcome.jobs) < 0.05 * outcome.duration_s


def hastened(job: SimulatedJob, iteration_s: float, iterations: int) -> SimulatedJob:
    times = tuple(iteration_s / job.iteration_s * t for t in job.time_s)
    return replace(job, iteration_s=iteration_s, time_s=times, iterations=iterations)


@pytest.mark.parametrize(
    ("peak", "peaks", "short_s", "least"), [(400, 0.9, 0.05, 1.8), (800, 0.82, 0.02, 1.6)]
)
def test_who_starts_only_between_iterations_of_another_is_passed_once_all_the_same(
    peak: int, peaks: float, short_s: float, least: float
) -> None:
    large = hastened(triangle("large", peak=peak), 0.1, 200)
    short = hastened(flat("short"), short_s, round(20 / short_s))
    outcome = run([large, short], budget(peaks, peak + 210), "waterwave")
    assert max(job.most_passed for job in outcome.jobs) <= 1
    assert outcome.stp > least
