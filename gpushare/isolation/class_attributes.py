"""An attribute of a class per job."""

from __future__ import annotations

from typing import Any

from gpushare.isolation.attributes import MISSING
from gpushare.isolation.perjob import PerJob


class ClassAttribute:
    """Lies in the class and answers as what the calling job has there would; without that, as the bases do.

    A descriptor with `__set__` and `__delete__` comes before what lies in an instance, and so can decide who does.
    """

    def __init__(self, owner: type, name: str, value: PerJob[Any]) -> None:
        self.owner, self.name, self.value = owner, name, value

    def _found(self, kind: type) -> Any:
        if (found := self.value.get()) is not MISSING:
            return found
        bases = kind.__mro__
        for base in bases[bases.index(self.owner) + 1 :]:
            if self.name in vars(base):
                return vars(base)[self.name]
        return MISSING

    def __get__(self, instance: Any, kind: type | None = None) -> Any:
        looked_up = type(instance) if kind is None else kind
        found = self._found(looked_up)
        if not _comes_first(found) and (own := self._instance_names(instance)) and self.name in own:
            return own[self.name]
        if found is MISSING:
            title = (
                f"type object {looked_up.__name__!r}"
                if instance is None
                else f"{looked_up.__name__!r} object"
            )
            raise AttributeError(f"{title} has no attribute {self.name!r}", name=self.name, obj=instance)
        get = getattr(type(found), "__get__", None)
        return found if get is None else get(found, instance, looked_up)

    def __set__(self, instance: Any, new: Any) -> None:
        found = self._found(type(instance))
        if hasattr(type(found), "__set__"):
            type(found).__set__(found, instance, new)
        else:
            self._writable(instance, found)[self.name] = new

    def __delete__(self, instance: Any) -> None:
        found = self._found(type(instance))
        if hasattr(type(found), "__delete__"):
            type(found).__delete__(found, instance)
        elif self.name in (names := self._writable(instance, found)):
            del names[self.name]
        else:
            raise AttributeError(self.name)

    def _instance_names(self, instance: Any) -> Any:
        """None where the interpreter does not look: special methods are the class's."""
        is_special = self.name.startswith("__") and self.name.endswith("__")
        return None if instance is None or is_special else getattr(instance, "__dict__", None)

    def _writable(self, instance: Any, found: Any) -> Any:
        names = getattr(instance, "__dict__", None)
        if names is None:
            state = "has no attribute" if found is MISSING else "object attribute is read-only:"
            raise AttributeError(f"{type(instance).__name__!r} {state} {self.name!r}")
        return names


def _comes_first(found: Any) -> bool:
    return hasattr(type(found), "__set__") or hasattr(type(found), "__delete__")
