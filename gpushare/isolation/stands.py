"""What stands for a function or class among a module's own names, where the module's code finds it without asking the
module: each job's is called."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from functools import wraps
from typing import Any

from gpushare.isolation.attributes import MISSING
from gpushare.isolation.perjob import PerJob


def stand_for(value: PerJob[Any], name: str) -> Any:
    """Something that can be called and asked for instances as the calling job's value, or the host's; without one, as
    the builtin of this name."""

    def find() -> Any:
        if (found := value.get()) is not MISSING:
            return found
        if not hasattr(builtins, name):
            raise NameError(f"name {name!r} is not defined", name=name)
        return getattr(builtins, name)

    original = value.host if value.host is not MISSING else getattr(builtins, name, None)
    return _Class(find) if isinstance(original, type) else _function(find, original)


def can_stand(original: Any, new: Any, name: str) -> bool:
    """Whether code that uses the one through a stand uses the other as well."""
    if original is MISSING:
        original = getattr(builtins, name, None)
    return callable(original) and (new is MISSING or callable(new))


def _function(find: Callable[[], Any], original: Any) -> Callable[..., Any]:
    """A real function: torch's compiler sorts functions by their kind."""

    @wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        return find()(*args, **kwargs)

    return call


class _Class:
    def __init__(self, find: Callable[[], Any]) -> None:
        self._find = find

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._find()(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._find(), name)

    def __instancecheck__(self, instance: Any) -> bool:
        return isinstance(instance, self._find())

    def __subclasscheck__(self, kind: type) -> bool:
        return issubclass(kind, self._find())

    def __mro_entries__(self, bases: tuple[Any, ...]) -> tuple[Any, ...]:
        return (self._find(),)

    def __getitem__(self, item: Any) -> Any:
        return self._find()[item]

    def __eq__(self, other: object) -> bool:
        found = self._find()
        return other is self or bool(found == (other._find() if isinstance(other, _Class) else other))

    def __hash__(self) -> int:
        return hash(self._find())

    def __repr__(self) -> str:
        return repr(self._find())
