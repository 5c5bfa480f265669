"""An attribute that jobs set and that can't be split: all have what was set last, and are told when they differ."""

from __future__ import annotations

import reprlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from gpushare.isolation import context, switch
from gpushare.isolation.attributes import MISSING


class SharedAttribute:
    """Of a class or a module.

    :param title: what a person calls it.
    :param put: sets a value, or takes the attribute away for `MISSING`.
    """

    def __init__(self, target: Any, name: str, title: str, put: Callable[[Any], None]) -> None:
        self._switch = switch.Switch(
            title, lambda seen: put(seen.value), lambda: _Seen(vars(target).get(name, MISSING))
        )

    def set(self, job: context.JobContext, name: str, value: Any) -> bool:
        """For all jobs."""
        self._switch.set(_Seen(value))
        return True

    def leave(self, job: context.JobContext) -> None:
        """The job's wish no longer counts."""
        self._switch.leave(job)


@dataclass(frozen=True, eq=False)
class _Seen:
    """A value that a person is told of, and that may be of a kind that has no plain answer to `==`."""

    value: Any

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Seen) or type(self.value) is not type(other.value):
            return False
        try:
            return self.value is other.value or bool(self.value == other.value)
        except Exception:  # whatever the script's kind of value raises
            return False

    def __hash__(self) -> int:
        return id(self.value)

    def __str__(self) -> str:
        return reprlib.repr(self.value)
