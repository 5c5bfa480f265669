"""Smallest budgets, against closed forms."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from shapes import HEADROOM, PAGE, PEAK, budget, triangle

from gpushare.simulation import Contention, SimulatedJob, simulate
from gpushare.simulation.search import budgets, smallest, sweep, sweep_budgets

FREE = Contention(cores=64)


@given(low=st.integers(0, 50), length=st.integers(0, 60), at=st.integers(0, 120))
def test_bisection_finds_the_first(low: int, length: int, at: int) -> None:
    high = low + length
    expected = next((n for n in range(low, high + 1) if n >= at), None)
    assert smallest(lambda n: n >= at, low, high) == expected
    assert smallest(lambda n: n >= at, low, high, from_top=True) == expected


@pytest.mark.parametrize("from_top", [True, False])
@given(away=st.integers(0, 3))
def test_what_lies_where_it_is_expected_is_found_soon(from_top: bool, away: int) -> None:
    calls = []

    def holds(n: int) -> bool:
        calls.append(n)
        return n >= (10**6 - away if from_top else away)

    assert smallest(holds, 0, 10**6, from_top=from_top) is not None
    assert len(calls) <= 7


def by_whole_runs(jobs: list[SimulatedJob], policy: str) -> tuple[int | None, int | None]:
    """Where nothing waits and where all run, page by page and each run to its end."""
    high = sum(job.peak_bytes // PAGE for job in jobs) + HEADROOM
    outcomes = {
        n: simulate(jobs, policy=policy, budget_bytes=n * PAGE, contention=FREE)
        for n in range(max(job.peak_bytes // PAGE for job in jobs), high + 1)
    }
    none = [n * PAGE for n, outcome in outcomes.items() if outcome.nothing_waits]
    some = [n * PAGE for n, outcome in outcomes.items() if outcome.all_run]
    return min(none, default=None), min(some, default=None)


@pytest.mark.parametrize("policy", ["auto", "unmanaged", "temporal", "zico", "waterwave"])
@pytest.mark.parametrize("residue", [0, 3])
def test_runs_that_end_early_give_the_same_budgets(policy: str, residue: int) -> None:
    jobs = [
        SimulatedJob("a", (12 * PAGE, residue * PAGE), (0.0, 0.5), 1.0, residue * PAGE, 4),
        SimulatedJob("b", (6 * PAGE, 9 * PAGE, residue * PAGE), (0.0, 0.3, 0.6), 0.7, residue * PAGE, 6),
    ]
    found = budgets(jobs, policy=policy, contention=FREE)
    assert (found.nothing_waits, found.all_run) == by_whole_runs(jobs, policy)


def test_nothing_waits_from_the_sum_of_the_peaks_on() -> None:
    pair = [triangle("a"), triangle("b")]
    found = budgets(pair, policy="unmanaged", contention=FREE)
    assert found.nothing_waits == 2 * PEAK * PAGE
    shared = budgets(pair, policy="zico", contention=FREE)
    # at first the two peaks coincide; the check claims nothing beyond them but the headroom
    assert shared.nothing_waits == (2 * PEAK + HEADROOM) * PAGE
    assert shared.all_run is not None and shared.all_run <= budget(1.0)


def test_one_at_a_time_always_waits_and_needs_the_largest_beside_the_residues() -> None:
    jobs = [
        SimulatedJob("a", (100 * PAGE, 30 * PAGE), (0.0, 0.5), 1.0, 30 * PAGE, 10),
        SimulatedJob("b", (60 * PAGE, 20 * PAGE), (0.0, 0.5), 1.0, 20 * PAGE, 10),
    ]
    found = budgets(jobs, policy="temporal", contention=FREE)
    assert found.nothing_waits is None
    assert found.all_run == (100 + 20 + HEADROOM) * PAGE  # with less b is queued


@pytest.mark.parametrize("policy", ["auto", "temporal"])
def test_short_iterations_all_run_however_long_a_turn_is(policy: str) -> None:
    jobs = [
        SimulatedJob(name, (10 * PAGE, PAGE), (0.0, 0.005), 0.01, PAGE, 1000, threads=64) for name in "ab"
    ]
    assert budgets(jobs, policy=policy, contention=FREE).all_run is not None


def test_a_sweep_spans_the_largest_peak_to_the_sum() -> None:
    jobs = [triangle("a", iterations=5), triangle("b", iterations=5, peak=500)]
    at = sweep_budgets(jobs, 4)
    assert at[0] == PEAK * PAGE and at[-1] == (PEAK + 500 + HEADROOM) * PAGE
    found = sweep(jobs, policies=["zico", "temporal"], budgets_bytes=at, contention=FREE)
    throughput = [point.stp for point in found["zico"]]
    assert throughput[-1] == pytest.approx(2)
    assert throughput == sorted(throughput)
    assert len(found["temporal"]) == len(at)
    assert {point.ended for points in found.values() for point in points} == {2}


def test_no_budget_of_a_sweep_is_below_the_least() -> None:
    pair = [triangle("a"), triangle("b")]
    whole = sweep_budgets(pair, 5)
    assert min(whole) == PEAK * PAGE
    some = sweep_budgets(pair, 5, least_bytes=PEAK * PAGE + PAGE // 2)
    assert min(some) == (PEAK + 1) * PAGE and max(some) == max(whole)
    assert sweep_budgets(pair, 5, least_bytes=1 << 40) == [1 << 40]
