"""A call is watched inside a function, and nobody can tell from outside."""

import sys
import traceback
import types

import pytest

from gpushare.framework.inplace import around_call

seen: list[str] = []


def engine(fails: bool) -> int:
    seen.append("engine")
    if fails:
        raise RuntimeError("engine failed")
    return sys._getframe(1).f_lineno


def drive(fails: bool = False, *, twice: int = 2) -> int:
    """Docs."""
    number: int = twice * 21
    engine(
        fails,
    )
    return number


def before() -> None:
    seen.append("before")


def after() -> None:
    seen.append("after")


def test_a_watched_call() -> None:
    function, code = drive, drive.__code__
    around_call(drive, "engine", before, after)
    assert drive is function and drive.__code__ is not code
    assert drive() == 42 and drive(twice=1) == 21
    assert seen == ["before", "engine", "after"] * 2
    assert drive.__doc__ == "Docs." and drive.__code__.co_firstlineno == code.co_firstlineno
    assert drive.__annotations__ == {"fails": bool, "twice": int, "return": int}
    seen.clear()
    with pytest.raises(RuntimeError) as failed:
        drive(True)
    assert seen == ["before", "engine"]
    frames = traceback.extract_tb(failed.tb)[1:]
    assert [(f.name, f.line) for f in frames] == [
        ("drive", "engine("),
        ("engine", 'raise RuntimeError("engine failed")'),
    ]


def never() -> None:
    """No such call."""


def twice() -> None:
    engine(False)
    engine(False)


@pytest.mark.parametrize(("function", "count"), [(never, 0), (twice, 2)])
def test_not_one_call(function: types.FunctionType, count: int) -> None:
    with pytest.raises(ValueError, match=f"has {count} statements that call engine, not one"):
        around_call(function, "engine", before, after)
