"""A check: one statement, and a function that says by claims and figures whether it is true on this machine."""

import importlib
import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

Emit = Callable[[dict[str, Any]], None]


class CannotCheck(Exception):
    """The statement can be neither confirmed nor refuted here; the text says why."""


class Seen:
    """What a check has seen. Each entry is sent on at once, so that a crash leaves what came before it."""

    def __init__(self, emit: Emit) -> None:
        self._emit = emit

    def claim(self, what: str, holds: bool) -> None:
        """A part of the statement. The statement is true if each of its claims holds."""
        self._emit({"claim": what, "holds": bool(holds)})

    def figure(self, name: str, value: Any) -> None:
        """A measured figure, with its unit in its name. A later one of the same name replaces it."""
        self._emit({"figure": name, "value": value})


@dataclass(frozen=True)
class Check:
    """`rank` 1 is for what the design rests on; `libraries` are built first, `preload` is loaded before torch.

    `quiet`: it measures what the CPU can do, so nothing else may run beside it.
    """

    name: str
    statement: str
    module: str
    rank: int
    limit_s: float
    libraries: tuple[str, ...]
    preload: tuple[str, ...]
    imports: tuple[str, ...]
    quiet: bool = False


_made: dict[Callable[[Seen], None], Check] = {}


def check(
    statement: str,
    *,
    rank: int = 2,
    limit_s: float = 30,
    libraries: Iterable[str] = (),
    preload: Iterable[str] = (),
    imports: Iterable[str] = ("torch",),
    quiet: bool = False,
) -> Callable[[Callable[[Seen], None]], Callable[[Seen], None]]:
    """Make a function a check, with its own name, in a process of its own that may take `limit_s` seconds."""

    def mark(function: Callable[[Seen], None]) -> Callable[[Seen], None]:
        loaded = tuple(preload)
        built = (*loaded, *libraries)
        name, module = function.__name__, function.__module__
        made = Check(name, statement, module, rank, limit_s, built, loaded, tuple(imports), quiet)
        _made[function] = made
        return function

    return mark


def checks_of(modules: Iterable[str]) -> list[Check]:
    """The checks of modules, the most valuable first, else in the order in which they are written."""
    found: list[Check] = []
    for module in modules:
        functions = filter(inspect.isfunction, vars(importlib.import_module(module)).values())
        found += [_made[f] for f in functions if f.__module__ == module and f in _made]
    return sorted(found, key=lambda one: one.rank)
