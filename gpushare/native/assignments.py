"""Has the interpreter ask us before a script assigns to a class or to a module (`shim/src/assignments.cpp`).

There is no call for it. The function that assigns lies in a slot of the type (`PyTypeObject.tp_setattro`), and once
more in the type's `__setattr__` and `__delattr__`, which call it and check that it is the slot's (`hackcheck` in
`typeobject.c`); classes that are made later take it from there. All of them are found by their value.
"""

from __future__ import annotations

import builtins
import ctypes
import gc
import sys
import types
from collections.abc import Callable
from typing import Any

from gpushare.native.library import NativeError, quick

_TYPE_WORDS = 48  # of PyTypeObject, up to the last slot that has been there in every version
_WRAPPED = 6  # word of PyWrapperDescrObject (descrobject.h): after the five of PyDescrObject, and `d_base`
_WRAPPERS = ("__setattr__", "__delattr__")
_kept: list[Any] = []  # what the shim calls

Decide = Callable[[Any, str, Any], bool]


def _words(of: object, count: int) -> Any:
    return (ctypes.c_size_t * count).from_address(id(of))


def _wrappers(base: type) -> list[Any]:
    """The words with the function in `__setattr__` and `__delattr__`."""
    return [_words(vars(base)[name], _WRAPPED + 1) for name in _WRAPPERS]


def _unseen() -> NativeError:
    return NativeError(
        f"python {sys.version.split()[0]} assigns to attributes where gpushare does not see it: what a script sets "
        "on a class or module of a package, as `torch.load = ...`, holds for the other scripts too"
    )


def _give_own_wrappers(base: type) -> None:
    """From Python 3.13 on a module's are `object`'s, which refuse what has another function in its slot."""
    create = ctypes.pythonapi.PyDescr_NewWrapper
    create.restype, create.argtypes = ctypes.py_object, [ctypes.py_object, ctypes.c_void_p, ctypes.c_void_p]
    names: Any = next(iter(gc.get_referents(vars(base))), None)
    if not isinstance(names, dict):
        raise _unseen()
    for name in _WRAPPERS:
        if name not in names:
            inherited = _words(getattr(base, name), _WRAPPED + 1)
            names[name] = create(base, inherited[_WRAPPED - 1], inherited[_WRAPPED])
            ctypes.pythonapi.PyType_Modified(ctypes.py_object(base))


def _slot(base: type) -> tuple[int, int]:
    """Which word of a type has the function, and the function.

    :raises NativeError: this Python has it somewhere else.
    """
    functions = {words[_WRAPPED] for words in _wrappers(base)}
    slots = [i for i, word in enumerate(_words(base, _TYPE_WORDS)) if word in functions]
    if len(functions) != 1 or len(slots) != 1:
        raise _unseen()
    return slots[0], functions.pop()


def _with_subclasses(base: type) -> set[type]:
    below: list[type] = type.__subclasses__(base)
    return {base}.union(*map(_with_subclasses, below))


def watch(decide: Decide, deleted: object) -> None:
    """From now on `decide` is asked, with `deleted` in the place of a value for `del`; True: it has dealt with it.

    To be called when no job runs yet, once.

    :raises NativeError: this Python can't be watched.
    """
    bases: tuple[type, ...] = (type, types.ModuleType)
    for base in bases:
        _give_own_wrappers(base)
    found = [_slot(base) for base in bases]
    plain = (ctypes.c_void_p * 2)(*(function for _, function in found))
    watching = (ctypes.c_void_p * 2)()
    _kept.extend((decide, deleted))
    quick["gs_assignments_watch"](decide, deleted, vars(builtins), plain, watching)
    for base, (slot, function), ours in zip(bases, found, watching, strict=True):
        for kind in _with_subclasses(base):
            words = _words(kind, slot + 1)
            if words[slot] == function:
                words[slot] = ours
        for wrapper in _wrappers(base):
            wrapper[_WRAPPED] = ours


def mark(target: object) -> None:
    """`decide` is asked of all that anybody assigns to it."""
    quick["gs_assignments_mark"](target, 1)


def unmark(target: object) -> None:
    """Of scripts' assignments only."""
    quick["gs_assignments_mark"](target, -1)
