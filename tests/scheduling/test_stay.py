"""The mode in force: when it has become another one, and when others are tried."""

from gpushare.scheduling.meter import Reading
from gpushare.scheduling.stay import Stay


def reading(worth: float, doubt: float = 0.0) -> Reading:
    return Reading(worth, doubt, True, worth, {}, {})


def full(stay: Stay, worth: float, *, changed: bool = False) -> bool:
    """Count a window; whether it stood alone."""
    alone = stay.is_alone(changed)
    stay.count(reading(worth), alone=alone, changed=changed)
    return alone


def test_it_has_changed_only_once_it_was_known_for_a_while_and_surely() -> None:
    stay = Stay()
    stay.begin(fresh=True, another=True)
    for _ in range(4):
        assert not stay.has_changed(reading(3.0))
        full(stay, 2.0)
    assert stay.has_changed(reading(3.0)) and not stay.has_changed(reading(2.2))
    assert not stay.has_changed(reading(3.0, doubt=0.8))
    full(stay, 3.0, changed=True)
    assert stay.windows == 1 and not stay.has_changed(reading(2.0))


def test_windows_of_another_mode_or_another_machine_stand_alone() -> None:
    stay = Stay()
    stay.begin(fresh=True, another=True)
    assert full(stay, 2.0) and not full(stay, 2.0)
    stay.begin(fresh=False, another=False)
    assert not full(stay, 2.0)
    stay.disturb()
    assert full(stay, 2.0)
    assert full(stay, 3.0, changed=True) and full(stay, 3.0)  # the change came in the middle of one


def test_the_stay_doubles_to_its_longest_and_is_counted_down_by_windows() -> None:
    stay, lengths = Stay(), []
    for _ in range(6):
        stay.lengthen()
        lengths.append(stay.left)
    assert lengths == [16, 32, 64, 128, 256, 256]
    full(stay, 1.0)
    assert stay.left == 255
    stay.before = 1.5
    stay.forget()
    assert stay.left == 0 and stay.before is None
    stay.lengthen()
    assert stay.left == 16


def test_low_windows_must_follow_each_other() -> None:
    stay = Stay()
    stay.begin(fresh=False, another=True)
    told = [stay.is_low(low) for low in [True] * 5 + [False] + [True] * 6]
    assert told == [False] * 11 + [True]


def test_what_was_taken_for_a_belief_is_fresh_until_its_window_is_full() -> None:
    stay = Stay()
    stay.begin(fresh=True, another=True)
    assert stay.fresh
    full(stay, 1.0)
    assert not stay.fresh


def test_turns_are_counted_through_changes_of_who_is_there() -> None:
    stay = Stay()
    stay.begin(fresh=True, another=True)
    stay.turns += 1
    stay.begin(fresh=False, another=False)
    assert stay.turns == 1
    stay.begin(fresh=False, another=True)
    assert stay.turns == 0
