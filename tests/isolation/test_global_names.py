"""Which of a module's names its own functions use as globals."""

import gc
import types
from collections.abc import Iterator

import pytest

from gpushare.isolation import global_names
from gpushare.isolation.global_names import Uses, uses


@pytest.fixture(autouse=True)
def nothing_known() -> Iterator[None]:
    yield
    global_names.forget()
    global_names._frozen.clear()


def module(code: str) -> types.ModuleType:
    made = types.ModuleType("made")
    exec(code, vars(made))
    return made


def test_functions_wherever_they_are() -> None:
    made = module("class A:\n    def f(self):\n        return lambda: one\nkept = {1: lambda: two}")
    assert uses(made, "one") == uses(made, "two") == Uses(read=True, written=False)
    exec("def g():\n    global three\n    three = one.four", vars(made))
    global_names.forget()
    assert uses(made, "three") == Uses(read=False, written=True)
    assert uses(made, "four") == Uses(read=False, written=False)  # an attribute


def test_what_was_frozen_is_found_too() -> None:
    made = module("def f():\n    return one")
    global_names.note_frozen()
    gc.freeze()
    try:
        assert not any(isinstance(found, types.FunctionType) for found in gc.get_referrers(vars(made)))
        assert uses(made, "one").read
    finally:
        gc.unfreeze()


def test_what_was_found_is_kept_until_something_is_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who replaces one name of a module replaces others of it, and each look takes all jobs' time."""
    made = module("")
    assert not uses(made, "one").read
    exec("def f():\n    return one", vars(made))
    assert not uses(made, "one").read
    global_names.forget()
    assert uses(made, "one").read
    exec("def g():\n    return two", vars(made))
    assert not uses(made, "two").read
    monkeypatch.setattr(global_names.time, "monotonic", lambda: float("inf"))
    assert uses(made, "two").read
