"""Settings of which the process has one."""

import io
import types
from collections.abc import Iterator

import pytest

from gpushare.isolation import context, switch

told: list[str] = []


def job(name: str) -> context.JobContext:
    streams = io.StringIO(), io.StringIO(), io.StringIO()
    return context.JobContext(name, 0, [], [], types.ModuleType(name), *streams, {}, told.append)


@pytest.fixture
def setting() -> Iterator[tuple[dict[str, int], switch.Switch]]:
    told.clear()
    value = {"it": 0}
    yield value, switch.Switch("it", lambda new: value.update(it=new), lambda: value["it"])
    context.bind(None)
    for left in list(switch.live):
        switch.leave(left)


def wish(who: context.JobContext, setting: switch.Switch, value: int) -> None:
    context.bind(who)
    setting.set(value)


def test_who_comes_later_is_named_too(setting: tuple[dict[str, int], switch.Switch]) -> None:
    _, it = setting
    first, late = job("first"), job("late")
    switch.enter(first)
    wish(first, it, 1)
    assert told == []
    switch.enter(late)
    assert len(told) == 1
    assert "first sets it to 1" in told[0] and "late (0)" in told[0]
    wish(late, it, 2)
    assert len(told) == 1, "once is enough"


def test_a_setting_that_was_put_back_is_no_conflict(setting: tuple[dict[str, int], switch.Switch]) -> None:
    _, it = setting
    first = job("first")
    switch.enter(first)
    wish(first, it, 1)
    wish(first, it, 0)
    switch.enter(job("late"))
    assert told == []


def test_the_host_s_value_is_back_after_the_last_wish(setting: tuple[dict[str, int], switch.Switch]) -> None:
    value, it = setting
    first, second = job("first"), job("second")
    for who, wanted in ((first, 1), (second, 2)):
        switch.enter(who)
        wish(who, it, wanted)
    it.leave(second)
    assert value["it"] == 2
    it.leave(first)
    assert value["it"] == 0
