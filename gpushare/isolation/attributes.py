"""An attribute of a module per job, for reading and for assignment."""

from __future__ import annotations

import copyreg
import importlib
import types
from collections.abc import Callable
from typing import Any

from gpushare.isolation.perjob import PerJob

MISSING: Any = type(
    "Missing", (), {"__repr__": lambda _: "nothing"}
)()  # in the place of a value where there is none
_classes: set[type] = set()  # made here, each for one module


def make_per_job(module: types.ModuleType, name: str, value: PerJob[Any]) -> None:
    """A property of the module's class comes before its own attribute, which its own functions go on to read."""

    def read(module: types.ModuleType) -> Any:
        if (found := value.get()) is MISSING:  # the module's `__getattr__` is asked then
            raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}")
        return found

    def write(_: types.ModuleType, new: Any) -> None:
        value.set(new)

    def delete(module: types.ModuleType) -> None:
        read(module)
        value.set(MISSING)

    setattr(_class_of(module), name, property(read, write, delete))


def make_shared(module: types.ModuleType, name: str) -> None:
    """The module's own attribute again."""
    delattr(type(module), name)


def _class_of(module: types.ModuleType) -> type:
    kind = type(module)
    if kind not in _classes:
        kind = type(kind.__name__, (kind,), {})
        give_class(module, kind)
        _classes.add(kind)
    return kind


def give_class(module: types.ModuleType, kind: type) -> None:
    """The module is of this class from now on. cloudpickle, and so joblib, knows the ordinary one only."""
    copyreg.pickle(kind, _by_name)
    _ask_class_first(kind)
    module.__class__ = kind


def _ask_class_first(kind: Any) -> None:
    """From 3.14 on the interpreter reads what is in a module's dict from there, past the properties of its class, where
    that looks names up as a plain module's does (`_LOAD_ATTR_MODULE` in its bytecodes.c).

    Both are functions in C, so that nothing is seen of it in tracebacks. The second one, which is asked for what is not
    there, knows of `__getattr__` in the module, and has the module's words for the error.
    """
    plain = types.ModuleType.__getattribute__
    if kind.__getattribute__ is plain and not hasattr(kind, "__getattr__"):
        kind.__getattribute__, kind.__getattr__ = object.__getattribute__, plain


def _by_name(module: types.ModuleType) -> tuple[Callable[[str], types.ModuleType], tuple[str]]:
    return importlib.import_module, (module.__name__,)


def calling(value: PerJob[Any], default: Any) -> Callable[..., Any]:
    """Stands where a function is looked up that each job may replace; None is none."""

    def call(*args: Any, **kwargs: Any) -> Any:
        function = value.get()
        return (default if function is None else function)(*args, **kwargs)

    return call
