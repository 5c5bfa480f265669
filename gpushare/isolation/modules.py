"""`sys.modules` per job for the modules of its own (see `ownership`).

It becomes a table that answers per job (`module_table.py`). The interpreter's own pointer to it is replaced as well:
then `import`, pickle and compiled code ask it too, since they take the short way only for exact dicts (`import.c`,
`import_get_module`).
"""

from __future__ import annotations

import builtins
import gc
import os
import sys
import types
from typing import Any

from gpushare.isolation import context, finders, imports, module_table, ownership, perjob, system
from gpushare.isolation.module_table import ModuleTable
from gpushare.native import interpreter


def _copy_of_builtins() -> types.ModuleType:
    """`builtins.print = ...` of a script is for its own modules; the shared ones have the interpreter's."""
    module = types.ModuleType("builtins")
    vars(module).update(vars(builtins))
    return module


def path_of_job(first: str) -> list[str]:
    """A job's `sys.path`: its own folder, then the host's."""
    return ownership.JobPath([first, *vars(sys)["path"]])


def _read_path(module: types.ModuleType) -> list[str]:
    job = context.current()
    path: list[str] = vars(module)["path"] if job is None else job.path
    return path


def _write_path(module: types.ModuleType, value: list[str]) -> None:
    job = context.current()
    if job is None:
        vars(module)["path"] = value
    else:
        job.path = ownership.JobPath(value)
        ownership.path_changed(job)


_modules: ModuleTable


def install() -> None:
    """Replace `sys.modules`, for Python code and for the interpreter.

    :raises NativeError: the interpreter keeps its pointer somewhere else.
    """
    global _modules
    _modules = ModuleTable(sys.modules)
    ownership.install(_modules.ask)
    finders.install(ownership.path_changed)
    interpreter.replace_interpreter_modules(sys.modules, _modules)
    sys.modules = _modules
    imports.at_each_end(_modules.show)
    system.add_property("path", property(_read_path, _write_path))
    os.register_at_fork(after_in_child=module_table.after_fork_in_child)


def enter(job: context.JobContext) -> None:
    """The script is `__main__`, which has the module itself as `__builtins__` where others have its names."""
    job.modules["builtins"] = _copy_of_builtins()
    job.modules["__main__"] = job.main
    vars(job.main)["__builtins__"] = job.modules["builtins"]
    if sys.version_info < (3, 14):  # from there on they are made when somebody asks for them
        vars(job.main)["__annotations__"] = {}
    ownership.enter(job)
    _modules.ask(job)


def leave(job: context.JobContext) -> None:
    """Drop the job's modules and what the script has set, then empty the modules that something still holds.

    In that order, as the interpreter does at its end: `__del__` of what a module has finds the module's names.
    """
    ownership.leave(job)
    _modules.give_back(job)
    if isinstance(own := job.modules.pop("builtins", None), types.ModuleType):
        vars(own).update(vars(builtins))  # what is called later may still print
    # A package may have put a shared module among its own, under another name.
    shared = set(map(id, _modules.shared().values()))
    modules = [m for m in job.modules.values() if isinstance(m, types.ModuleType) and id(m) not in shared]
    mark = _mark(modules)
    job.modules.clear()
    perjob.drop_values(job)
    job.main = types.ModuleType("__main__")
    modules.clear()
    gc.collect()
    if left := _marked(mark):
        _empty(left)
        left.clear()
        gc.collect()


class _Mark:
    """Lies among the names of all modules of a job: whose are still there are found by it, also without the module."""


_MARK, _NUMBER = "__gpushare_mark__", "__gpushare_number__"


def _mark(modules: list[types.ModuleType]) -> _Mark:
    mark = _Mark()
    for number, module in enumerate(modules):
        vars(module).update({_MARK: mark, _NUMBER: number})
    return mark


def _marked(mark: _Mark) -> list[dict[str, Any]]:
    """In one call, in which no other thread runs: a list of all objects would have some that are not complete yet, and
    which their makers can't change while somebody else holds them."""
    return [names for names in gc.get_referrers(mark) if isinstance(names, dict) and names.get(_MARK) is mark]


def _empty(tables: list[dict[str, Any]]) -> None:
    """As the interpreter empties modules (`_PyModule_ClearDict`): the last first, of each the names that begin with one
    `_` first."""
    for names in sorted(tables, key=lambda names: -int(names[_NUMBER])):
        keys = [key for key in names if key != "__builtins__"]
        for key in sorted(keys, key=lambda key: not _is_private(key)):
            names[key] = None


def _is_private(key: object) -> bool:
    return isinstance(key, str) and key[:1] == "_" and key[1:2] != "_"
