"""Shares by CPU clocks, from marks that are made up; what a real job has is in `tests/end_to_end/test_plan.py`."""

import pytest

from gpushare.framework.shares import Mark, Shares, _enough, shares

MS = 10**6


def marks(*steps: tuple[int, int]) -> list[Mark]:
    """The clocks after steps of so many milliseconds of wall and process time."""
    found = [Mark(5, 9)]
    for wall, process in steps:
        last = found[-1]
        found.append(Mark(last.wall_ns + wall * MS, last.process_ns + process * MS))
    return found


def test_all_threads_of_the_process_are_the_jobs() -> None:
    found = shares(marks((100, 180), (100, 200), (120, 220)))
    assert found == Shares(pytest.approx(0.1), pytest.approx(600 / 320), pytest.approx((1.0, 1.0, 1.2)))


def test_before_an_iteration_has_ended_nothing_is_known() -> None:
    assert shares(marks()) is None


def test_of_many_iterations_a_short_one_counts_but_not_the_odd_one() -> None:
    slow_at_first = [(150, 150)] * 4 + [(100, 100)] * 7 + [(20, 20)]
    found = shares(marks(*slow_at_first))
    assert found and found.iteration_s == pytest.approx(0.1)


def test_the_spread_is_of_parts_with_as_many_iterations() -> None:
    found = shares(marks(*[(100 + 10 * (i % 16), 1) for i in range(32)]))
    assert found and found.iteration_s == pytest.approx(0.14)
    assert found.spread == pytest.approx([(105 + 20 * part) / 140 for part in range(8)])


@pytest.mark.parametrize(
    ("step_ms", "count", "is_enough"),
    [(500, 2, False), (500, 3, True), (50, 19, False), (50, 20, True), (1, 63, False), (1, 64, True)],
)
def test_iterations_are_looked_at_for_a_second(step_ms: int, count: int, is_enough: bool) -> None:
    assert _enough(marks(*[(step_ms, 1)] * count)) is is_enough
