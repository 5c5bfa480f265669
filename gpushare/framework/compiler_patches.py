"""What torch's compiler assigns to torch's own classes when it is first used.

That modules tell it when they are made it asks of `nn.Module` once for the process. What is assigned there in a job is
the job's (`tracing`), and the compiler can't look into what answers per job: so it is done when the compiler is
imported, for all. That distributions no longer check their arguments holds for the jobs that compile.
"""

from __future__ import annotations

import types
from functools import wraps
from typing import Any

import torch
import torch.distributions

from gpushare.isolation import context, imports, patches, settings
from gpushare.isolation.perjob import PerJob

_has_compiled: PerJob[bool] = PerJob(False, lambda: False)


def _tag_modules(module: types.ModuleType) -> None:
    """Unless a script has its own `nn.Module.__init__` just now, which must not be baked in."""
    names: Any = module
    if hasattr(module, "install_generation_tagging_init"):
        patches.for_all_jobs(
            torch.nn.Module, ("__init__", "__setstate__"), names.install_generation_tagging_init
        )


def _patch_each(module: types.ModuleType) -> None:
    patcher: Any = getattr(module, "TorchPatcher", None)
    if not hasattr(patcher, "patch"):
        return
    patch = patcher.patch

    def patch_for_job() -> None:
        patch()
        if not _has_compiled.get():
            _has_compiled.set(True)
            torch.distributions.Distribution.set_default_validate_args(False)

    patcher.patch = staticmethod(patch_for_job)


def _collect_less(module: types.ModuleType) -> None:
    """From torch 2.15 on the collector's thresholds are higher while anybody compiles."""
    names: Any = module
    if hasattr(module, "deferred_full_gc"):
        names.gc = settings.plain_collector()


def _ask_modules(module: types.ModuleType) -> None:
    """What a module's class answers per job (`sys.argv`) comes before what lies in its dict, where the compiler looks
    first; but for torch's own modules, which it asks."""
    kind: Any = getattr(module, "PythonModuleVariable", None)
    if kind is None:
        return
    begin = kind.__init__

    @wraps(begin)
    def begin_and_ask(self: Any, value: types.ModuleType, *args: Any, **kwargs: Any) -> None:
        begin(self, value, *args, **kwargs)
        self.is_torch = getattr(self, "is_torch", False) or type(value) is not types.ModuleType

    kind.__init__ = begin_and_ask


def install() -> None:
    """As soon as the compiler has been imported."""
    imports.when_imported("torch._dynamo.mutation_guard", _tag_modules)
    imports.when_imported("torch._dynamo.eval_frame", _patch_each)
    imports.when_imported("torch._dynamo.utils", _collect_less)
    imports.when_imported("torch._dynamo.variables.misc", _ask_modules)


def enter(job: context.JobContext) -> None:
    """Nothing: a job begins with nothing compiled."""


def leave(job: context.JobContext) -> None:
    """Nothing: what is its own goes with it."""
