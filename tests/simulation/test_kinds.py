"""Jobs whose iterations are of several kinds, as their profiles have them."""

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from shapes import PAGE, budget, profile_of

from gpushare.profiles import IterationKind
from gpushare.simulation import Contention, SimulatedJob, from_profile, simulate
from gpushare.simulation.job import Following
from gpushare.simulation.search import budgets

ALLOCATIONS = 600  # of the profile


def kind(
    peak: int,
    iteration_s: float,
    followed_by: tuple[int, ...],
    *,
    allocations: int = ALLOCATIONS,
    part: float = 0.5,
) -> IterationKind:
    """`peak` pages in the first `part`, nothing in the rest."""
    return IterationKind(
        ordinals=(0, round(part * allocations)),
        held_bytes=(peak * PAGE, 0),
        time_s=(0.0, part * iteration_s),
        allocations=allocations,
        residue_bytes=0,
        iteration_s=iteration_s,
        seen=sum(followed_by),
        followed_by=followed_by,
    )


def job(name: str, *kinds: IterationKind, iterations: int = 20) -> SimulatedJob:
    profile = replace(profile_of(name), kinds=kinds)
    return from_profile(profile, name, iterations=iterations)


@given(st.lists(st.integers(0, 50), min_size=3, max_size=3), st.integers(0, 60))
def test_each_kind_is_followed_as_often_as_it_was(row: list[int], iterations: int) -> None:
    kinds = [kind(1, 1.0, tuple(row)) for _ in row]
    following = Following(kinds)
    order = [following(n) for n in range(iterations + 1)]
    for last in range(3 if any(row) else 0):
        followed = [b for a, b in pairwise(order) if a == last]
        for i, count in enumerate(row):
            assert abs(followed.count(i) - count / sum(row) * len(followed)) < 3


def test_two_in_turns() -> None:
    order = Following([kind(1, 1.0, (0, 9)), kind(1, 1.0, (9, 0))])
    assert [order(n) for n in (0, 1, 2, 3, 101)] == [0, 1, 0, 1, 1]


def test_alone_it_takes_the_time_of_all_kinds() -> None:
    alternating = job("a", kind(900, 2.0, (0, 9)), kind(100, 0.5, (9, 0)), iterations=10)
    assert alternating.solo_s == pytest.approx(12.5)
    outcome = simulate([alternating], policy="zico", budget_bytes=budget(1.5), contention=Contention(2))
    assert outcome.duration_s == pytest.approx(12.5, rel=1e-3)
    assert outcome.pool_peak_bytes == 900 * PAGE


def test_small_iterations_find_room_beside_large_ones() -> None:
    """At 1.2 peaks two large iterations do not fit, but a small one fits beside a large one."""
    large, small = kind(1000, 1.0, (1, 3), part=0.9), kind(100, 1.0, (3, 9), part=0.9)
    always = kind(1000, 1.0, (9,), part=0.9)
    stp = [
        simulate(
            [job(name, *kinds) for name in "ab"],
            policy="zico",
            budget_bytes=budget(1.2),
            contention=Contention(2),
        ).stp
        for kinds in ((always,), (large, small))
    ]
    assert stp[0] < 1.2 and stp[1] > 1.2 * stp[0]


def test_budgets_are_searched_with_kinds_that_come_late() -> None:
    rare = job("a", kind(100, 1.0, (19, 1), part=0.9), kind(1000, 1.0, (1, 0), part=0.9), iterations=40)
    steady = job("b", kind(500, 1.0, (9,), part=0.9), iterations=40)
    assert rare.until_all_kinds(100) == 11 and steady.until_all_kinds(100) == 1
    found = budgets([rare, steady], policy="greedy", contention=Contention(2))
    assert found.nothing_waits >= 1500 * PAGE


def test_a_kind_with_fewer_allocations_ends_before_the_others() -> None:
    short = kind(10, 0.1, (9, 0), allocations=ALLOCATIONS // 8)
    shapes = job("a", kind(1000, 1.0, (0, 9)), short).kinds
    assert len(shapes[1].held_bytes) < len(shapes[0].held_bytes)
    assert max(shapes[1].held_bytes) == 10 * PAGE and shapes[1].time_s[-1] <= 0.1
