"""`sys.meta_path` per job: finders that a script adds, or a package of which it has a copy, find for that job only.

They go with it: its packages are emptied at its end, and a finder of theirs would fail for whoever imports next.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from importlib.machinery import ModuleSpec, PathFinder
from typing import Any

from gpushare.isolation import context, system
from gpushare.isolation.watched_list import WatchedList

_KEY = ("finders",)  # a tuple, as of what a script may set
_host: list[Any]
_on_change: Callable[[context.JobContext], object]


class _JobFinders(WatchedList):
    """Those of a job, whose change asks anew whose the modules are."""

    def __init__(self, finders: list[Any]) -> None:
        super().__init__(finders)
        self.hosts = list(finders)  # of those that all have, the ones that have been put here

    def take_new(self) -> None:
        """What shared modules have added since, where they have put it."""
        for index, finder in enumerate(_host):
            if not any(finder is known for known in self.hosts):
                self.hosts.append(finder)
                list.insert(self, index, finder)

    def changed(self, before: list[Any]) -> None:
        """By the script: what shared modules have added is put there otherwise."""
        if job := context.current():
            _on_change(job)

    def of_script(self) -> list[Any]:
        """Those that not all have."""
        return [finder for finder in self if not any(finder is known for known in self.hosts)]


def has_own(job: context.JobContext) -> bool:
    """Whether it has some that not all have."""
    own: _JobFinders | None = job.values.get(_KEY)
    return own is not None and bool(own.of_script())


def finds(job: context.JobContext, name: str, path: list[str]) -> bool:
    """Whether a finder of the job's own is the first that finds the module. `path`: the job's `sys.path`."""
    own: _JobFinders | None = job.values.get(_KEY)
    if own is None or not (of_script := own.of_script()):
        return False
    for finder in list(own):
        if find(finder, name, path if finder is PathFinder else None) is not None:
            return any(finder is one for one in of_script)
    return False


def find(finder: Any, name: str, path: list[str] | None = None) -> ModuleSpec | None:
    """A module at the top. What a finder raises at whoever imports is nothing to who only asks."""
    try:
        spec = finder.find_spec(name, path)
    except Exception:  # any: what a finder does is the script's
        return None
    return spec if isinstance(spec, ModuleSpec) else None


def _of(job: context.JobContext) -> _JobFinders:
    own: _JobFinders | None = job.values.get(_KEY)
    if own is None:
        own = job.values.setdefault(_KEY, _JobFinders(_host))
    own.take_new()
    return own


def _read(_: types.ModuleType) -> list[Any]:
    job = None if context.importing_shared() else context.current()
    return _host if job is None else _of(job)


def _write(_: types.ModuleType, new: list[Any]) -> None:
    job = None if context.importing_shared() else context.current()
    if job is None:
        _host[:] = new
    else:
        _of(job)[:] = new


def install(on_change: Callable[[context.JobContext], object]) -> None:
    """Make the attribute of `sys` per job.

    :param on_change: is told of jobs that changed theirs.
    """
    global _host, _on_change
    _host, _on_change = sys.meta_path, on_change
    system.add_property("meta_path", property(_read, _write))
