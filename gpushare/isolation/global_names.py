"""Which of a module's names its own code finds or sets without asking the module, as a global."""

from __future__ import annotations

import dis
import gc
import itertools
import time
import types
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

_READ = {"LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS"}
_WRITTEN = {"STORE_GLOBAL", "DELETE_GLOBAL", "STORE_NAME", "DELETE_NAME"}


_KEPT_S = 1.0  # who replaces one name of a module replaces others of it

# By id() of a module's names, which they keep: functions that the collector does not look at, and what it has found.
_frozen: dict[int, list[types.FunctionType]] = {}
_found: dict[int, _Found] = {}


@dataclass(frozen=True)
class Uses:
    """What the functions of a module do with one of its names as a global."""

    read: bool
    written: bool


@dataclass(frozen=True)
class _Found:
    names: dict[str, Any]
    codes: list[types.CodeType]
    until: float


def note_frozen() -> None:
    """Before `gc.freeze`: the collector tells of what is there no more."""
    for found in gc.get_objects():
        if type(found) is types.FunctionType:  # of others isinstance asks what they say they are
            _frozen.setdefault(id(found.__globals__), []).append(found)


def forget() -> None:
    """What has been imported may have made functions of any module."""
    _found.clear()


def uses(module: types.ModuleType, name: str) -> Uses:
    """Looks at each function whose globals are the module's names, which the collector finds in some 20 ms."""
    operations = {operation for code in _codes_of(vars(module)) for operation in _operations(code, name)}
    return Uses(read=bool(operations & _READ), written=bool(operations & _WRITTEN))


def _codes_of(names: dict[str, Any]) -> list[types.CodeType]:
    found, now = _found.get(id(names)), time.monotonic()
    if found is None or found.names is not names or now > found.until:
        found = _found[id(names)] = _Found(names, list(_find_codes(names)), now + _KEPT_S)
    return found.codes


def _find_codes(names: dict[str, Any]) -> Iterator[types.CodeType]:
    # What the collector knows is complete: methods, what a decorator has wrapped, functions in a container.
    for user in itertools.chain(_frozen.get(id(names), ()), gc.get_referrers(names)):
        if type(user) is types.FunctionType and user.__globals__ is names:
            yield from _with_inner(user.__code__)


def _with_inner(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _with_inner(constant)


def _operations(code: types.CodeType, name: str) -> set[str]:
    if name not in code.co_names:  # attributes are there as well
        return set()
    return {step.opname for step in dis.get_instructions(code) if step.argval == name}
