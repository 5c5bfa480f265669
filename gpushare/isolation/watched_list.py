"""A list that tells of its changes."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any


class WatchedList(list[Any]):
    """Of one job, which changes it as any list."""

    @abstractmethod
    def changed(self, before: list[Any]) -> None:
        """Called after each change, also one that has failed; `before`: what was in it."""


def _changing(name: str) -> Any:
    original = getattr(list, name)

    def change(self: WatchedList, *args: Any, **kwargs: Any) -> Any:
        before = list(self)
        try:
            return original(self, *args, **kwargs)
        finally:
            self.changed(before)

    return change


for _name in (
    *("append", "extend", "insert", "remove", "pop", "clear"),
    *("__setitem__", "__delitem__", "__iadd__"),
):
    setattr(WatchedList, _name, _changing(_name))
