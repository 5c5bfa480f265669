"""Who had better take turns with whom, told from how fast each is beside all others."""

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from gpushare.scheduling.efficiency import efficiency
from gpushare.scheduling.group_search import alike
from gpushare.scheduling.groups import Found, Rates, best_groups, evenness, is_fair, slowdowns


def rates_of(factors: dict[tuple[int, int], float], jobs: int) -> dict[int, float]:
    """Of jobs that are all slowed down by these parts of their solo time, for either of a pair."""
    both = {**factors, **{(j, i): f for (i, j), f in factors.items()}}
    return {i: 1 / (1 + sum(both.get((i, j), 0.0) for j in range(jobs) if j != i)) for i in range(jobs)}


def exactly(rates: Rates) -> Found | None:
    return best_groups(rates, dict.fromkeys(rates, 0.0))


parts = st.floats(0.05, 3)


@given(st.tuples(parts, parts, parts))
@example((3.0, 3.0, 0.05))
def test_of_three_jobs_each_pair_is_found(pairs: tuple[float, float, float]) -> None:
    factors = dict(zip(((0, 1), (0, 2), (1, 2)), pairs, strict=True))
    found = slowdowns(list(rates_of(factors, 3).values()))
    for (i, j), factor in factors.items():
        for one in (found[i][j], found[j][i]):
            assert one == pytest.approx(factor, rel=0.1, abs=0.05)
    assert all(found[i][i] == 0 for i in range(3))


def test_two_that_slow_each_other_down_take_turns_beside_the_third() -> None:
    found = exactly(rates_of({(0, 1): 2.0}, 3))
    assert found and found.groups == (frozenset({0, 1}),)
    assert found.efficiency == pytest.approx(efficiency([0.5, 0.5, 1.0]))


def test_three_of_five() -> None:
    hold_the_gil = {(i, j): 2.0 for i in range(3) for j in range(i)}
    found = exactly(rates_of(hold_the_gil, 5))
    assert found and found.groups == (frozenset({0, 1, 2}),)


def test_two_pairs_that_differ_are_told_apart() -> None:
    found = exactly(rates_of({(0, 1): 6.0, (2, 3): 1.5}, 4))
    assert found and found.groups[0] == frozenset({0, 1})
    other_way = exactly(rates_of({(0, 1): 1.5, (2, 3): 6.0}, 4))
    assert other_way and {*other_way.groups} <= {frozenset({0, 1}), frozenset({2, 3})}
    assert list(other_way.groups) == sorted(other_way.groups, key=min)


def test_a_job_that_feels_more_than_the_others_together() -> None:
    """No symmetric shares explain it: what is left over is put down to who is slowed down too."""
    slowed = slowdowns([1 / 7, 2 / 3, 0.98])
    assert [sum(row) for row in slowed] == pytest.approx([6, 0.5, 0.02], abs=0.03)
    assert slowed[0][1] > 5 > slowed[1][0]
    found = exactly({5: 1 / 7, 6: 2 / 3, 7: 0.98})
    assert found and found.groups == (frozenset({5, 6}),)


@given(st.lists(st.floats(0.02, 1), min_size=3, max_size=12))
def test_rows_add_up_to_what_is_measured(rates: list[float]) -> None:
    for rate, row in zip(rates, slowdowns(rates), strict=True):
        assert min(row) >= 0 and sum(row) == pytest.approx(1 / rate - 1, rel=1e-6, abs=1e-6)


def test_only_the_same_rates_of_the_same_jobs_are_alike() -> None:
    assert alike({1: 0.5, 2: 0.9}, {2: 0.93, 1: 0.52}) and not alike({1: 0.05, 2: 0.9}, {1: 0.08, 2: 0.9})
    assert not alike({1: 0.5, 2: 0.9}, {1: 0.5, 2: 0.8})
    assert not alike({1: 0.5, 2: 0.9}, {1: 0.5, 3: 0.9}) and not alike({1: 0.5}, {})


@pytest.mark.parametrize("rates", [[1.0, 1.0, 1.0], [0.9, 0.8, 0.95], [0.5, 0.5, 0.5], [0.4, 0.4, 0.4, 0.4]])
def test_where_all_are_alike_there_are_none(rates: list[float]) -> None:
    assert exactly(dict(enumerate(rates, 1))) is None


@given(st.lists(st.floats(-0.1, 1.2), min_size=2, max_size=20))
def test_groups_are_apart_and_two_jobs_run_at_a_time(rates: list[float]) -> None:
    accounts = dict(enumerate(rates, 1))
    if found := exactly(accounts):
        grouped = [account for group in found.groups for account in group]
        assert len(grouped) == len(set(grouped)) and set(grouped) <= accounts.keys()
        assert all(len(group) > 1 for group in found.groups)
        assert len(found.groups) + len(accounts) - len(grouped) >= 2
        assert 0 < found.efficiency <= len(accounts)


@given(st.floats(0.2, 0.8), st.floats(0.01, 0.15), st.lists(st.floats(-1, 1), min_size=3, max_size=12))
def test_of_equal_jobs_none_is_put_off_for_another(rate: float, off: float, noise: list[float]) -> None:
    rates = {i: rate + off * by for i, by in enumerate(noise)}
    assume(efficiency([*rates.values()]) > 1.3)
    if found := best_groups(rates, dict.fromkeys(rates, off)):
        sizes = {i: len(next((group for group in found.groups if i in group), {i})) for i in rates}
        assert len(set(sizes.values())) == 1


def test_how_even_shares_may_be() -> None:
    assert evenness({1: 0.4, 2: 0.8}, {1: 0.0, 2: 0.0}) == pytest.approx(0.5)
    assert evenness({1: 0.4, 2: 0.8}, {1: 0.05, 2: 0.05}) == pytest.approx(0.6)
    assert (
        evenness({1: 0.4, 2: 0.5}, {1: 0.1, 2: 0.1}) == evenness({1: -0.1, 2: 0.1}, {1: 0.2, 2: 0.2}) == 1.0
    )


def test_what_is_fair() -> None:
    exactly = {1: 0.0, 2: 0.0}
    before = {1: 0.4, 2: 0.8}, exactly
    assert is_fair({1: 0.4, 2: 1.0}, exactly, before), "nobody is slower"
    assert is_fair({1: 0.3, 2: 0.6}, exactly, before), "as even"
    assert not is_fair({1: 0.3, 2: 0.9}, exactly, before)
    assert is_fair({1: 0.3, 2: 0.9}, {1: 0.05, 2: 0.05}, before), "as far as can be told"


def test_where_little_is_gained_a_guess_may_be_measured() -> None:
    """Two pairs that slow each other down look like four equal jobs: which ones they are nobody can tell."""
    assert best_groups(dict.fromkeys(range(4), 0.244), dict.fromkeys(range(4), 0.01))
