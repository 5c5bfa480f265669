"""Whose a module is: a job's own if it is found through an entry of `sys.path` that the host did not start with (the
script's folder, `PYTHONPATH`, what the script appends) or by a finder that it has added, or if it is of an installed
package of which each job has a copy (`installed`); else shared by all. A folder where an installer has put packages is
no script's even if `PYTHONPATH` names it, this interpreter's or any with a `.dist-info`: compiled packages can be
loaded once in a process.
"""

from __future__ import annotations

import os
import site
import sys
import sysconfig
import threading
from collections.abc import Callable, Iterable
from importlib.machinery import PathFinder
from typing import Any

from gpushare.isolation import context, finders, installed
from gpushare.isolation.context import JobContext
from gpushare.isolation.watched_list import WatchedList

_shared_path: frozenset[str] = frozenset()
# Not gpushare itself either: run from its tree by `PYTHONPATH`, a second copy would know of no shim.
_never_own = frozenset(sys.stdlib_module_names) - {"__main__"} | {__name__.partition(".")[0]}
_live: list[JobContext] = []


class _LookedFor(threading.local):
    def __init__(self) -> None:
        self.tops: set[str] = set()  # whose finders the calling thread is asking just now


_looked_for = _LookedFor()
_on_change: Callable[[JobContext], object]
_installed: installed.Installed | None = None  # before `install` all packages are shared
_wanted_shared: tuple[str, ...] = ()


def share(packages: Iterable[str]) -> None:
    """To be called before `install`: of these installed packages there is one copy for all jobs."""
    global _wanted_shared
    _wanted_shared = tuple(packages)


def install(on_change: Callable[[JobContext], object]) -> None:
    """`sys.path` as it is now is shared, less what only `PYTHONPATH` puts there.

    :param on_change: is told of jobs that changed theirs.
    """
    global _shared_path, _on_change, _installed
    given = os.environ.get("PYTHONPATH")
    entries = {os.path.abspath(entry) for entry in given.split(os.pathsep)} if given else set()
    _shared_path = frozenset(vars(sys)["path"]) - {entry for entry in entries if not _is_installed(entry)}
    _on_change = on_change
    _installed = installed.of_this_interpreter(map(top_of, sys.modules), _wanted_shared)


def _is_installed(folder: str) -> bool:
    """Whether it is one of this interpreter's own, or an installer has put packages there."""
    own = [*sysconfig.get_paths().values(), *site.getsitepackages(), site.getusersitepackages()]
    if folder in map(os.path.abspath, own):
        return True
    try:
        return any(name.endswith(".dist-info") for name in os.listdir(folder))
    except OSError:
        return False


def enter(job: JobContext) -> None:
    """The job counts from now on."""
    _live.append(job)


def leave(job: JobContext) -> None:
    """The job's modules are no longer asked for."""
    _live.remove(job)


def live_jobs() -> tuple[JobContext, ...]:
    """Jobs whose scripts run."""
    return tuple(_live)


def top_of(name: str) -> str:
    """The package a module is found through."""
    return name.partition(".")[0]


def owns(job: JobContext, name: str) -> bool:
    """Whether the job, whose thread the calling one is, finds a module of its own there, be it loaded or not.

    A shared module that is being imported finds the shared copy of an installed package: it keeps that for all jobs.
    """
    if context.importing_shared():
        return _is_of_script(job, name)
    return name in claimed(job) or _is_of_script(job, name) or _has_own(name)


def claim(job: JobContext, name: str) -> None:
    """The job puts something else in the place of a shared module, or takes it away: the name is its own by now."""
    claimed(job).add(name)


def claimed(job: JobContext) -> set[str]:
    """Names of shared modules that are the job's own by now."""
    names: set[str] | None = job.values.get(claimed)
    return job.values.setdefault(claimed, set()) if names is None else names


def adopt(job: JobContext, name: str) -> bool:
    """The job puts a module there that nothing finds: from now on modules of this name are its own."""
    top = top_of(name)
    if (
        context.importing_shared()
        or top in _never_own
        or _installed is None
        or not _installed.is_missing(top)
    ):
        return False
    job.values.setdefault(_is_of_script, {"__main__": True})[top] = True
    return True


def may_own(job: JobContext, name: str) -> bool:
    """Whether there can be a module of this name that is the job's own. From any thread; its finders are code of its
    own, which no other job runs."""
    if context.current() is not job and finders.has_own(job) and not _is_known_shared(top_of(name)):
        return True
    return _is_of_script(job, name) or _has_own(name)


def _has_own(name: str) -> bool:
    return (top := top_of(name)) not in _never_own and _installed is not None and _installed.has_own(top)


def is_nobodys(name: str) -> bool:
    """Whether a shared module is a copy beside those of the jobs, which shared packages need."""
    return _installed is not None and _installed.is_apart(top_of(name))


def _is_known_shared(top: str) -> bool:
    return _installed is None or _installed.is_shared(top)


def _is_of_script(job: JobContext, name: str) -> bool:
    top = top_of(name)
    if top in _never_own:
        return False
    known: dict[str, bool] = job.values.setdefault(_is_of_script, {"__main__": True})
    own = known.get(top)
    if own is None and top not in _looked_for.tops:  # the finders may import
        _looked_for.tops.add(top)
        try:
            own = known[top] = _is_own(job, top)
        finally:
            _looked_for.tops.discard(top)
    return bool(own)


def _is_own(job: JobContext, top: str) -> bool:
    if not _is_known_shared(top) and finders.finds(job, top, _absolute(job, job.path)):
        return True
    others = _shared_path | _of_packages(job)
    own_entries = _absolute(job, (entry for entry in job.path if entry not in others))
    own = PathFinder.find_spec(top, own_entries)
    found = PathFinder.find_spec(top, _absolute(job, job.path)) if own else None
    if own is None or found is None:
        return False
    if own.origin or found.origin:  # a package that is installed goes before a folder that only has its name
        return own.origin == found.origin
    return not set(own.submodule_search_locations or ()).isdisjoint(found.submodule_search_locations or ())


def _of_packages(job: JobContext) -> set[str]:
    """Entries of the job's path that shared modules have put there while they were imported."""
    found: set[str] = job.values.setdefault(_of_packages, set())
    return found


def _absolute(job: JobContext, entries: Iterable[str]) -> list[str]:
    given = list(entries)
    if all(map(os.path.isabs, given)):
        return given
    # The working directory is the thread's own, and another job's thread may ask.
    here = os.readlink(f"/proc/self/task/{job.thread.native_id}/cwd")
    return [os.path.join(here, entry) if entry else here for entry in given]


def path_changed(job: JobContext) -> None:
    """What was not found may be found now: `sys.path`, or `sys.meta_path`, has changed."""
    known: dict[str, bool] = job.values.get(_is_of_script, {})
    for name in [name for name, own in list(known.items()) if not own]:
        known.pop(name, None)
    if job in _live:
        _on_change(job)


class JobPath(WatchedList):
    """`sys.path` of a job: a change asks anew whose the modules are."""

    def __reduce__(self) -> Any:
        return list, (list(self),)

    def changed(self, before: list[Any]) -> None:
        """What a shared module has put there, while it was imported, is of packages."""
        if job := context.current():
            if context.importing_shared():
                _of_packages(job).update(set(self) - set(before))
            path_changed(job)
