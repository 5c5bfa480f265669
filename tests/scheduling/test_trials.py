"""What trials may lose."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpushare.scheduling.trials import ALLOWED_LATE_S, CLOSE_LOOK_S, TRIALS_SHARE, TrialAccount


def test_a_hundredth_of_the_time_may_be_lost_and_what_goes_unseen_counts() -> None:
    account = TrialAccount()
    account.count(100.0, on_trial=False)
    assert account.left_s == pytest.approx(TRIALS_SHARE * 100)
    assert account.until_next_look_s == pytest.approx(CLOSE_LOOK_S + ALLOWED_LATE_S)
    assert account.affords(0.9) and not account.affords(0.91)
    account.lose(0.5)
    assert account.affords(0.4) and not account.affords(0.41)
    account.lose(0.8)  # a mode that was taken for a wrong belief
    assert account.left_s < 0 and not account.affords(0.0)


def test_how_late_looks_come_is_learned_in_trials_alone() -> None:
    account = TrialAccount()
    account.count(5.0, on_trial=False)
    assert account.until_next_look_s == pytest.approx(CLOSE_LOOK_S + ALLOWED_LATE_S)
    account.count(CLOSE_LOOK_S + 0.4, on_trial=True)
    account.count(CLOSE_LOOK_S, on_trial=True)
    assert account.until_next_look_s == pytest.approx(CLOSE_LOOK_S + 0.4)


@given(st.lists(st.tuples(st.floats(0.05, 3.0), st.floats(0.0, 1.0)), max_size=50))
def test_who_asks_before_never_loses_more(steps: list[tuple[float, float]]) -> None:
    account, elapsed_s = TrialAccount(), 0.0
    for passed_s, seconds in steps:
        account.count(passed_s, on_trial=False)
        elapsed_s += passed_s
        if account.affords(seconds):
            account.lose(seconds)
        assert account.lost_s <= TRIALS_SHARE * elapsed_s
