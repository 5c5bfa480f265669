"""Classes that a script lets `torch.load` make (`torch.serialization.add_safe_globals`).

Torch finds them by their names, and each script has its own `__main__.Config`. Torch keeps a set among the names of
`torch._weights_only_unpickler`, and puts `set.union(more)` or `set - fewer` in its place: the set that lies there now
answers to these per job.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from torch import _weights_only_unpickler

from gpushare.isolation import context
from gpushare.isolation.perjob import PerJob


@dataclass
class _Changes:
    added: set[Any] = field(default_factory=set)
    removed: set[Any] = field(default_factory=set)


class JobSet:
    """What packages have added, with a job's own changes."""

    def __init__(self, host: Iterable[Any]) -> None:
        self._host = set(host)
        self._changes: PerJob[_Changes | None] = PerJob(None, _Changes, imports_set_all=True)

    def union(self, more: set[Any]) -> JobSet:
        """Adds to the calling job's set, or to all."""
        if (changes := self._changes.get()) is None:
            self._host |= more
        else:
            changes.added |= more
            changes.removed -= more
        return self

    def __sub__(self, fewer: set[Any]) -> JobSet:
        if (changes := self._changes.get()) is None:
            self._host -= fewer
        else:
            changes.added -= fewer
            changes.removed |= fewer
        return self

    def __iter__(self) -> Iterator[Any]:
        changes = self._changes.get()
        return iter(set(self._host) if changes is None else (self._host - changes.removed) | changes.added)


def install() -> None:
    """Put the set there, if this torch keeps one."""
    unpickler: Any = _weights_only_unpickler
    kept = getattr(unpickler, "_marked_safe_globals_set", None)
    if isinstance(kept, set):
        own = JobSet(kept)
        unpickler._marked_safe_globals_set = own
        unpickler._clear_safe_globals = lambda: own - set(own)


def enter(job: context.JobContext) -> None:
    """Nothing: a job begins with those of packages."""


def leave(job: context.JobContext) -> None:
    """Nothing: values go with the context."""
