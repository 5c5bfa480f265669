"""What is believed of modes as others are measured."""

import pytest

from gpushare.scheduling.modes import Mode, Modes
from gpushare.scheduling.snapshot import GROUPS, TURNS


def modes(**worth: float) -> Modes:
    return Modes(
        {name: Mode(known) for name, known in {"zico": 1.6, "waterwave": 1.5, TURNS: 1.0, **worth}.items()}
    )


def test_forecasts_of_sharing_are_wrong_by_as_much_and_turns_have_no_part_in_it() -> None:
    known = modes(**{GROUPS: 1.2})
    known.note("zico", 0.8, in_force=True)
    found = {name: mode.worth for name, mode in known.items()}
    assert found == pytest.approx({"zico": 0.8, "waterwave": 0.75, TURNS: 1.0, GROUPS: 1.2})
    assert known.best_beside("zico") == GROUPS


def test_a_measured_mode_in_force_takes_all_others_along() -> None:
    known = modes()
    known.note("zico", 1.2, in_force=True)
    known.note("waterwave", 1.0, in_force=False)
    known.note("zico", 0.6, in_force=True)
    assert (known.worth_of("waterwave"), known.worth_of(TURNS)) == pytest.approx((0.5, 0.5))
    known.note("waterwave", 0.9, in_force=False)  # a trial says nothing of the others
    assert (known.worth_of("zico"), known.worth_of(TURNS)) == pytest.approx((0.6, 0.5))


def test_turns_come_to_no_more_than_their_definition_until_they_are_measured() -> None:
    known = modes()
    for worth in (0.9, 1.8):
        known.note("zico", worth, in_force=True)
    assert known.worth_of(TURNS) == 1.0
    known.note(TURNS, 1.1, in_force=False)
    known.note("zico", 3.6, in_force=True)
    assert known.worth_of(TURNS) == pytest.approx(2.2)


def test_what_is_forgotten_is_scaled_no_further_by_what_was_forecast() -> None:
    known = modes()
    known.note("zico", 1.2, in_force=True)
    for worth in (0.6, 1.2, 0.6, 1.2):
        known.note("zico", worth, in_force=True)
        known.forget([name for name in known if name != "zico"])
    assert known.worth_of("waterwave") == pytest.approx(1.2 * 1.5 / 1.6)
    assert not known["waterwave"].measured and known["zico"].measured


def test_nothing_is_taken_along_to_nought() -> None:
    known = modes()
    known.note("zico", 1.2, in_force=True)
    known.note("zico", 0.0, in_force=True)
    assert known.worth_of(TURNS) == 1.0
    known.note("zico", 1.2, in_force=True)
    assert known.worth_of(TURNS) == 1.0
