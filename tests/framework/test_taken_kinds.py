"""Kinds of iterations in a profile that is taken, and given."""

from typing import Any

import pytest

from gpushare.framework import profiles
from gpushare.native.doors import NativeKind


def kind(duration_ns: int, seen: int) -> NativeKind:
    return NativeKind([0, 5], [100, 50], [0, duration_ns // 2], 10, 0, duration_ns, seen, [seen, 0, 0, 0])


def taken(
    monkeypatch: pytest.MonkeyPatch, kinds: list[NativeKind], iteration_s: float
) -> list[dict[str, Any]]:
    monkeypatch.setattr(profiles.doors, "kinds_get", lambda account: kinds)
    return profiles._kinds(1, iteration_s)


def test_times_are_those_of_the_job_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside another job the first kind took 2 s where it takes 1 s alone; the third did not come at all."""
    found = taken(monkeypatch, [kind(2 * 10**9, 7), kind(10**9, 3), kind(4 * 10**8, 0)], 1.0)
    assert [k["iteration_s"] for k in found] == pytest.approx([1.0, 0.5, 0.4])
    assert found[1]["time_s"] == pytest.approx([0.0, 0.25])
    assert [k["seen"] for k in found] == [7, 3, 0] and found[0]["followed_by"] == [7, 0, 0]


def test_one_kind_is_the_curve_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    assert taken(monkeypatch, [kind(10**9, 7)], 1.0) == []


def test_few_of_many_are_believed() -> None:
    assert profiles._believed([2000, 10]) == [16, 1]
    assert profiles._believed([3, 1, 0]) == [3, 1, 0] and profiles._believed([]) == []
