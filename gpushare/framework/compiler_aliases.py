"""Names by which code that torch's compiler makes finds modules.

It puts them among the globals of the frame that it compiles. Where that is a function of a shared package, with code of
a script in it, these are the globals of all jobs, and the compiler fails where it finds another module of the name
there: a job's own `__main__`, say. There a job's own modules have a name of the job's, until it ends.
"""

from __future__ import annotations

import functools
import sys
import types
from typing import Any

from gpushare.isolation import context, imports, ownership
from gpushare.isolation.perjob import PerJob

_Globals = dict[str, Any]
# Where a job's own modules have been put, and by which name.
_placed: PerJob[list[tuple[_Globals, str]]] = PerJob([], list)


def _is_own(job: context.JobContext, names: _Globals) -> bool:
    """Whether these are the globals of a module of the job's own."""
    module = sys.modules.get(name := names.get("__name__", ""))
    return getattr(module, "__dict__", None) is names and ownership.owns(job, name)


def _split(module: types.ModuleType) -> None:
    kind: Any = getattr(module, "InstructionTranslatorBase", None)
    if not hasattr(kind, "import_source") or not hasattr(module, "_import_module"):
        return
    compiler: Any = module
    place, find = kind.import_source, compiler._import_module
    # By the names that are asked for; the module of each.
    asked: PerJob[dict[str, str]] = PerJob({}, dict)

    def find_asked(name: str) -> types.ModuleType:
        found: types.ModuleType = find(asked.get().get(name, name))
        return found

    @functools.wraps(place)
    def place_for_job(self: Any, module_name: str) -> Any:
        job = context.current()
        scope: _Globals = self.output.global_scope
        if job is None or not ownership.owns(job, module_name) or _is_own(job, scope):
            return place(self, module_name)
        asked_for = f"{module_name}_of_job_{job.account}"
        asked.of(job)[asked_for] = module_name
        source = place(self, asked_for)
        alias = source.global_name
        self.output.import_sources[alias] = module_name
        placed = _placed.of(job)
        if not any(names is scope and known == alias for names, known in placed):
            placed.append((scope, alias))
        return source

    compiler._import_module, kind.import_source = find_asked, place_for_job


def install() -> None:
    """As soon as the compiler has been imported, behind `compiler_memory`, whose jobs find their own modules."""
    imports.when_imported("torch._dynamo.symbolic_convert", _split)


def enter(job: context.JobContext) -> None:
    """Nothing: a job begins with nothing compiled."""


def leave(job: context.JobContext) -> None:
    """Its modules are no longer kept by globals of others."""
    for names, alias in _placed.of(job):
        names.pop(alias, None)
