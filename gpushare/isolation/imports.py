"""Import locks: shared modules are imported by one job at a time, a job's own with locks of its own."""

from __future__ import annotations

import importlib
import os
import sys
import threading
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from gpushare.isolation import context, interrupts, ownership
from gpushare.isolation.attributes import MISSING
from gpushare.native import shim

_bootstrap: Any = importlib._bootstrap
_importing = threading.RLock()
_LONGEST_IMPORT_S = 20.0
_when_imported: dict[str, list[Callable[[types.ModuleType], object]]] = {}
_at_each_end: list[Callable[[], object]] = []
_around: list[tuple[Callable[[], Any], Callable[[Any], object]]] = []


def _lock_name(name: str) -> str:
    job = context.current()
    return f"{job.account}:{name}" if job is not None and ownership.owns(job, name) else name


def when_imported(name: str, then: Callable[[types.ModuleType], object]) -> None:
    """Call `then` with the shared module: now, or when a job has imported it and nobody else has it yet."""
    if name in sys.modules:
        then(sys.modules[name])
    else:
        _when_imported.setdefault(name, []).append(then)


def around_shared(before: Callable[[], Any], after: Callable[[Any], object]) -> None:
    """Call `before` when a job begins to import shared modules, and `after` with its result at the end."""
    _around.append((before, after))


def at_each_end(then: Callable[[], object]) -> None:
    """Call `then` when a job has imported a shared module, those that it imports itself among them."""
    _at_each_end.append(then)


def lock_imports() -> Any:
    """Wait until no other job imports a shared module, and keep it so; None if one does for very long.

    Python locks each module by itself, so two jobs that import a package of many circles from two ends can see
    modules half made. With a limit, since a module may wait for a thread of its own that imports.
    """
    lock = _importing
    longest_s = 0.0 if context.importing_shared() else _LONGEST_IMPORT_S  # the outer import has waited
    return lock if lock.acquire(timeout=longest_s) else None


def _after_fork_in_child() -> None:
    # Held by the thread that forked, or by nobody that is still there.
    global _importing
    _importing = threading.RLock()


@contextmanager
def _kept_in_package(job: context.JobContext | None, name: str) -> Iterator[None]:
    """A job's own copy of a shared module, which it imports here, takes that one's place in `sys.modules` only, and not
    among the names of the package that all jobs share."""
    if job is None or name not in ownership.claimed(job):
        yield
        return
    package, _, last = name.rpartition(".")
    names = vars(sys.modules[package]) if package in sys.modules and not ownership.owns(job, package) else {}
    before = names.get(last, MISSING)
    try:
        yield
    finally:
        if before is not MISSING:
            names[last] = before
        else:
            names.pop(last, None)


def install() -> None:
    """Shared modules are imported by one job at a time, and nobody waits for memory there.

    Own modules have locks per job, so a training that runs inside an import of its own waits as any other.
    """
    find_and_load = _bootstrap._find_and_load
    get_lock = _bootstrap._get_module_lock

    def guarded(name: str, import_: Any) -> Any:
        job = context.current()
        if job is None or ownership.owns(job, name):
            with _kept_in_package(job, name):
                return find_and_load(name, import_)
        with interrupts.held_back():  # else the lock might stay behind
            lock = lock_imports()
            shim.nowait(1)
            watchers = () if context.importing_shared() else tuple((end, begin()) for begin, end in _around)
            context.count_shared_import(1)
            try:
                module = find_and_load(name, import_)
                # A package is asked for by its own modules too, while it is half made.
                if name in _when_imported and not getattr(module.__spec__, "_initializing", False):
                    for then in _when_imported.pop(name):
                        then(module)
                return module
            finally:
                context.count_shared_import(-1)
                for at_end in _at_each_end:
                    at_end()
                for end, begun in watchers:
                    end(begun)
                shim.nowait(-1)
                if lock:
                    lock.release()

    # The interpreter cuts the frames of this file name out of tracebacks, and a script should not see ours.
    guarded.__code__ = guarded.__code__.replace(co_filename="<frozen importlib._bootstrap>")
    _bootstrap._find_and_load = guarded
    _bootstrap._get_module_lock = lambda name: get_lock(_lock_name(name))
    os.register_at_fork(after_in_child=_after_fork_in_child)


def enter(job: context.JobContext) -> None:
    """Nothing to set up."""


def leave(job: context.JobContext) -> None:
    """Nothing to take down."""
