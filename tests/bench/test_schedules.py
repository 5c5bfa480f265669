"""scripts/bench/schedules.py: its schedules come again by their seeds, and what it counts comes up in them."""

import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent.parent.parent / "scripts" / "bench"))
import schedules
from schedules import PASSED, WAITS


@pytest.mark.parametrize(
    ("wrong", "count", "also"),
    [(False, 80, WAITS.values()), (True, 30, ("with overruns",))],
)
def test_what_is_counted_comes_up(wrong: bool, count: int, also: Iterable[str]) -> None:
    found = schedules.run("random", wrong, 0, count)
    assert found["schedules"] == count
    assert found["hung or exceeded"] == found["refused though it fits"] == 0
    assert found["cuts asked"] == found["cuts taken"] + found["cuts refused"]
    for what in ("stalled", "cuts taken", "cuts refused", "ends in mid-iteration", "measured first", *also):
        assert found[what] > 0, what
    assert all(found[what] <= 100 for what in WAITS.values())
    assert found[PASSED] == 1


def test_a_seed_tells_a_schedule() -> None:
    assert schedules.schedule(7, "random", False) == schedules.schedule(7, "random", False)


@pytest.mark.parametrize("policy", ["zico", "waterwave"])
def test_who_left_for_others_does_not_come_back_before_them(policy: str) -> None:
    """As its door alone would have let it: it left and came back for ever, and none of the others went on."""
    found = schedules.schedule(417, policy, True)
    assert found["with copies out"] > 0
