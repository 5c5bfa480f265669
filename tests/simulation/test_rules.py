"""What a simulated run is told beside its policy."""

from dataclasses import replace

import pytest
from shapes import budget, triangle

from gpushare.jobs import FIFO, ORDERS, PRIORITY, SRTF
from gpushare.scheduling.policies import POLICIES
from gpushare.scheduling.snapshot import Permit, Snapshot
from gpushare.simulation import Contention, Engine, Outcome, SimulatedJob, simulate
from gpushare.simulation.rules import Rules

FREE = Contention(cores=64)


def ends(jobs: list[SimulatedJob], rules: Rules) -> dict[str, float]:
    """When each job ends, where one iteration runs at a time."""
    found: Outcome = simulate(jobs, policy="temporal", budget_bytes=budget(1.5), contention=FREE, rules=rules)
    return {job.name: job.end_s for job in found.jobs}


def test_who_has_the_highest_priority_ends_first() -> None:
    jobs = [replace(triangle(name), priority=priority) for name, priority in (("a", 0), ("b", 2), ("c", 1))]
    found = ends(jobs, Rules(PRIORITY))
    assert sorted(found, key=lambda name: found[name]) == ["b", "c", "a"]
    assert found["b"] == pytest.approx(30)  # it is begun first, too
    assert found["b"] < ends(jobs, Rules(FIFO))["b"] / 2


def test_who_has_the_least_to_do_ends_first() -> None:
    jobs = [triangle(name, iterations=n) for name, n in (("a", 40), ("b", 10), ("c", 20))]
    found = ends(jobs, Rules(SRTF))
    assert [found[name] for name in ("b", "c", "a")] == pytest.approx(
        [10, 30, 70], abs=1
    )  # b is begun first, too


@pytest.mark.parametrize("order", ORDERS)
def test_under_each_order_all_is_done(order: str) -> None:
    jobs = [replace(triangle(f"job {i}", iterations=10 + 5 * i), priority=i % 2) for i in range(4)]
    found = simulate(jobs, policy="zico", budget_bytes=budget(1.6), contention=FREE, rules=Rules(order))
    assert found.all_ok and sum(job.iterations for job in found.jobs) == 70


def test_a_policy_is_told_the_size_of_segments() -> None:
    seen: list[int | None] = []

    def policy(snapshot: Snapshot) -> list[Permit]:
        seen.append(snapshot.split_bytes)
        return POLICIES["waterwave"](snapshot)

    engine = Engine(
        [triangle("a", iterations=3), triangle("b", iterations=3)],
        policy=policy,
        mechanism="zico",
        budget_bytes=budget(1.3),
        contention=FREE,
        rules=Rules(split_bytes=64 << 20),
    )
    with engine.governor:
        engine.run()
    assert set(seen) == {64 << 20}
