"""`sys.modules` per job for the modules of its own: its `__main__`, and what lies in its own folders.

A module is a job's own if it is found through an entry of `sys.path` that the host did not start with: the
script's folder, `PYTHONPATH`, what the script appends. Everything else is shared.

`sys.modules` becomes a dict that holds the shared modules itself and answers for the rest per job. The
interpreter's own pointer to it is replaced as well: then `import`, pickle and compiled code ask it too, since
they take the short way only for exact dicts (`import.c`, `import_get_module`).
"""

from __future__ import annotations

import importlib
import os
import sys
import threading
import types
from collections.abc import Iterator
from importlib.machinery import PathFinder
from typing import Any

from gpushare import native
from gpushare.isolation import context, system

_bootstrap: Any = importlib._bootstrap
_shared_path: frozenset[str] = frozenset()
_importing = threading.RLock()
_LONGEST_IMPORT_S = 20.0
_never_own = frozenset(sys.stdlib_module_names) - {"__main__"}


class _Modules(dict[str, types.ModuleType]):
    """Modules by name, as the calling job sees them."""

    def __getitem__(self, name: str) -> types.ModuleType:
        own = _own_modules(name)
        return super().__getitem__(name) if own is None else own[name]

    def __setitem__(self, name: str, module: types.ModuleType) -> None:
        own = _own_modules(name)
        if own is None:
            super().__setitem__(name, module)
        else:
            own[name] = module

    def __delitem__(self, name: str) -> None:
        own = _own_modules(name)
        if own is None:
            super().__delitem__(name)
        else:
            del own[name]

    def __contains__(self, name: object) -> bool:
        own = _own_modules(name)
        return super().__contains__(name) if own is None else name in own

    def get(self, name: str, default: Any = None) -> Any:
        own = _own_modules(name)
        return super().get(name, default) if own is None else own.get(name, default)

    def pop(self, name: str, *default: Any) -> Any:
        own = _own_modules(name)
        return super().pop(name, *default) if own is None else own.pop(name, *default)

    def setdefault(self, name: str, default: Any = None) -> Any:
        own = _own_modules(name)
        return super().setdefault(name, default) if own is None else own.setdefault(name, default)

    def update(self, *others: Any, **more: Any) -> None:
        for name, module in dict(*others, **more).items():
            self[name] = module

    # Snapshots, since other jobs import meanwhile.
    def copy(self) -> dict[str, types.ModuleType]:
        shared = self._shared()
        job = context.current()
        if job is None:
            return dict(shared)
        return {name: module for name, module in shared if not owns(job, name)} | job.modules

    def _shared(self) -> list[tuple[str, types.ModuleType]]:
        while True:
            try:
                return list(dict.items(self))
            except RuntimeError:  # changed meanwhile
                continue

    def __iter__(self) -> Iterator[str]:
        return iter(self.copy())

    def __len__(self) -> int:
        return super().__len__() if context.current() is None else len(self.copy())

    def keys(self) -> Any:
        return self.copy().keys()

    def values(self) -> Any:
        return self.copy().values()

    def items(self) -> Any:
        return self.copy().items()


def _own_modules(name: object) -> dict[str, types.ModuleType] | None:
    job = context.current()
    return job.modules if job is not None and isinstance(name, str) and owns(job, name) else None


def owns(job: context.JobContext, name: str) -> bool:
    """Whether the module is the job's own, be it loaded or not."""
    top = name.partition(".")[0]
    if top in _never_own:
        return False
    known: dict[str, bool] = job.values.setdefault(_own_modules, {"__main__": True})
    own = known.get(top)
    if own is None:
        known[top] = False  # while the finders look for it
        own = known[top] = _is_own(job, top)
    return own


def _is_own(job: context.JobContext, top: str) -> bool:
    path = job.path
    own_entries = [entry for entry in path if entry not in _shared_path]
    if PathFinder.find_spec(top, own_entries) is None:
        return False
    spec = PathFinder.find_spec(top, path)
    if spec is None:
        return False
    places = [spec.origin] if spec.origin else list(spec.submodule_search_locations or ())
    roots = tuple(os.path.join(entry or os.getcwd(), "") for entry in own_entries)
    return any(place.startswith(roots) for place in places)


def own_modules_change(job: context.JobContext) -> None:
    """What was not found may be found now: `sys.path` has changed."""
    known: dict[str, bool] = job.values.get(_own_modules, {})
    for name in [name for name, own in known.items() if not own]:
        del known[name]


class JobPath(list[str]):
    """`sys.path` of a job: a change asks anew whose the modules are."""


def _changing(name: str) -> Any:
    original = getattr(list, name)

    def change(self: JobPath, *args: Any, **kwargs: Any) -> Any:
        try:
            return original(self, *args, **kwargs)
        finally:
            if job := context.current():
                own_modules_change(job)

    return change


for _name in (
    "append",
    "extend",
    "insert",
    "remove",
    "pop",
    "clear",
    "__setitem__",
    "__delitem__",
    "__iadd__",
):
    setattr(JobPath, _name, _changing(_name))


def _lock_name(name: str) -> str:
    job = context.current()
    return f"{job.account}:{name}" if job is not None and owns(job, name) else name


def lock_imports() -> Any:
    """Wait until no other job imports a shared module, and keep it so; None if one does for very long.

    Python locks each module by itself, so two jobs that import a package of many circles from two ends can see
    modules half made. With a limit, since a module may wait for a thread of its own that imports.
    """
    lock = _importing
    return lock if lock.acquire(timeout=_LONGEST_IMPORT_S) else None


def _after_fork_in_child() -> None:
    # Held by the thread that forked, or by nobody that is still there.
    global _importing
    _importing = threading.RLock()


def guard_shared_imports() -> None:
    """Shared modules are imported by one job at a time, and nobody waits for memory there.

    Own modules have locks per job, so a training that runs inside an import of its own waits as any other.
    """
    find_and_load = _bootstrap._find_and_load
    get_lock = _bootstrap._get_module_lock

    def guarded(name: str, import_: Any) -> Any:
        job = context.current()
        if job is None or owns(job, name):
            return find_and_load(name, import_)
        lock = lock_imports()
        native.nowait(1)
        context.count_shared_import(1)
        try:
            return find_and_load(name, import_)
        finally:
            context.count_shared_import(-1)
            native.nowait(-1)
            if lock:
                lock.release()

    # The interpreter cuts the frames of this file name out of tracebacks, and a script should not see ours.
    guarded.__code__ = guarded.__code__.replace(co_filename="<frozen importlib._bootstrap>")
    _bootstrap._find_and_load = guarded
    _bootstrap._get_module_lock = lambda name: get_lock(_lock_name(name))


def path_of_job(first: str) -> list[str]:
    """A job's `sys.path`: its own folder, then the host's."""
    return JobPath([first, *vars(sys)["path"]])


def _read_path(module: types.ModuleType) -> list[str]:
    job = context.current()
    path: list[str] = vars(module)["path"] if job is None else job.path
    return path


def _write_path(module: types.ModuleType, value: list[str]) -> None:
    job = context.current()
    if job is None:
        vars(module)["path"] = value
    else:
        job.path = JobPath(value)
        own_modules_change(job)


def install() -> None:
    """Replace `sys.modules`, for Python code and for the interpreter.

    :raises NativeError: the interpreter keeps its pointer somewhere else.
    """
    global _shared_path
    given = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    _shared_path = frozenset(vars(sys)["path"]) - set(given)
    modules = _Modules(sys.modules)
    native.replace_interpreter_modules(sys.modules, modules)
    sys.modules = modules
    system.add_property("path", property(_read_path, _write_path))
    guard_shared_imports()
    os.register_at_fork(after_in_child=_after_fork_in_child)


def enter(job: context.JobContext) -> None:
    """The script is `__main__`."""
    job.modules["__main__"] = job.main


def leave(job: context.JobContext) -> None:
    """Drop what the job's modules hold."""
    for module in list(job.modules.values()):
        if isinstance(module, types.ModuleType):
            vars(module).clear()
    job.modules.clear()
