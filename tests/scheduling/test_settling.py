"""Jobs that leave and come back: for how long nothing is measured."""

from gpushare.scheduling.settling import Settling

FOUR = frozenset({5, 6, 7, 8})


def test_nothing_moves_at_first() -> None:
    assert Settling().is_over(0.0, {3}, False)


def test_all_who_leave_must_have_left_and_all_others_run() -> None:
    settling = Settling()
    settling.begin(FOUR, 10.0)
    assert not settling.is_over(11.0, (), True)
    assert not settling.is_over(12.0, (6, 7, 8), True)
    assert not settling.is_over(12.5, range(4, 9), True)  # one was away for want of memory: there is room now
    assert not settling.is_over(12.5, range(5, 9), False)
    assert settling.is_over(13.0, range(5, 9), True)
    assert settling.is_over(13.5, (), True)  # they were away: what comes back since does not count
    assert settling.took_s == 2.5  # until they had left


def test_some_never_leave() -> None:
    settling = Settling()
    settling.begin(FOUR, 20.0)
    assert not settling.is_over(49.0, (), False) and settling.is_over(50.0, (), False)
    assert settling.took_s == 30.0


def test_those_that_come_back_are_waited_for_and_no_others() -> None:
    settling = Settling()
    settling.begin(FOUR, 0.0)
    assert settling.is_over(1.0, FOUR, True)
    settling.begin(frozenset(), 60.0)
    assert not settling.is_over(60.5, {1, 7}, True)
    assert settling.is_over(61.0, {1, 2}, False)  # copied out for want of memory
    assert settling.is_over(61.5, {7}, True)
    assert settling.took_s == 1.0
    settling.begin(FOUR, 70.0)
    settling.begin(frozenset(), 71.0)  # before they had left
    assert not settling.is_over(100.0, {7}, True) and settling.is_over(101.0, {7}, True)


def test_each_is_waited_for_until_it_was_back_once() -> None:
    settling = Settling()
    settling.begin(FOUR, 0.0)
    settling.is_over(1.0, FOUR, True)
    settling.begin(frozenset(), 60.0)
    assert not settling.is_over(60.5, {5, 6}, True)
    assert not settling.is_over(61.0, {6, 7}, True)
    assert settling.is_over(61.5, {5, 7}, True)  # the memory of all does not suffice


def test_where_nobody_has_to_move_nothing_is_learned() -> None:
    settling = Settling()
    settling.begin(FOUR, 0.0)
    assert settling.is_over(3.0, FOUR, True)
    settling.begin(FOUR, 60.0)
    assert settling.is_over(60.0, FOUR, True)
    assert settling.took_s == 3.0


def test_a_sleeper_that_is_away_does_not_make_the_others_slow() -> None:
    settling = Settling()
    settling.begin(FOUR, 0.0)
    assert not settling.is_over(2.0, {1, *FOUR}, True)  # it is waited for, as there is room for it
    assert settling.took_s == 2.0
    settling.begin(frozenset({1, 2, 3, 4}), 60.0)
    assert not settling.is_over(61.0, {1, 2, 3, 4, 7}, True) and settling.took_s == 2.0
    assert settling.is_over(62.5, {1, 2, 3, 4}, True) and settling.took_s == 2.5


def test_a_way_that_was_cut_short_took_as_long_at_least() -> None:
    settling = Settling()
    settling.begin(FOUR, 0.0)
    assert settling.is_over(1.0, FOUR, True)
    settling.begin(frozenset(), 60.0)
    assert not settling.is_over(64.0, FOUR, True)
    settling.begin(FOUR, 65.0)
    assert settling.took_s == 5.0
