"""A call is watched inside a function, and nobody can tell from outside."""

import sys
import traceback
import types

import pytest

from gpushare.framework.inplace import add_answer, around_call

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


def choose(twice: bool, keep: bool = False) -> int:
    if twice:

        def again() -> int:
            return engine(keep) + engine(keep)

        result = again()
    else:
        result = engine(keep)
    return result


def test_names_are_told_around_a_statement_that_calls_somewhere_within() -> None:
    told: list[tuple[object, ...]] = []

    def note(*values: object) -> None:
        told.append(values)

    expected = choose(True), choose(False)
    around_call(choose, "engine", note, note, told=("keep", "twice"))
    assert (choose(True), choose(False)) == expected
    assert told == [(False, True)] * 2 + [(False, False)] * 2


def never() -> None:
    """No such call."""


def twice() -> None:
    engine(False)
    engine(False)


@pytest.mark.parametrize(("function", "count"), [(never, 0), (twice, 2)])
def test_not_one_call(function: types.FunctionType, count: int) -> None:
    with pytest.raises(ValueError, match=f"has {count} statements that call engine, not one"):
        around_call(function, "engine", before, after)


def answer() -> int:
    return 42


class _Holder:  # so that its source is indented
    def named(key: str) -> tuple[str, int]:
        """Docs."""
        return key, len(traceback.extract_stack())


def test_an_answer_is_added() -> None:
    function = _Holder.__dict__["named"]
    before = function("b")
    add_answer(function, "a", answer)
    assert function("a") == 42
    assert function("b") == before and function.__doc__ == "Docs."
