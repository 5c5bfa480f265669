"""What torch's compiler remembers, per job: of a function its compiled forms and which sizes have varied, modules by
their names, and the back ends that a script has registered.

Both belong to code objects or to their lines in a file, which jobs share when they run one script or compile modules
of one package. A second job would count against the first one's recompile limit, compile for sizes of any value where
it alone compiles for the one it has, and with `mode="reduce-overhead"` replay the first one's graphs, in its memory.
"""

from __future__ import annotations

import functools
import importlib
import itertools
import sys
import types
from typing import Any

import torch

from gpushare.isolation import context, imports
from gpushare.isolation.job_dict import JobDict
from gpushare.isolation.perjob import PerJob
from gpushare.native import shim

_SIZES = ("_CODE_STATE", "_INIT_CODE_STATE")
_BACKENDS = ("_TorchCompileInductorWrapper", "_TorchCompileWrapper")  # in torch's __init__.py
_sizes: PerJob[dict[str, Any]] = PerJob({}, dict)
_numbers = itertools.count(1)
_number: PerJob[int] = PerJob(0, lambda: next(_numbers))  # of the job
_EVAL_FRAME: Any = torch._C._dynamo.eval_frame
_pgo: Any = None


def show_compiler() -> None:
    """The calling thread begins to compile, with the sizes that its job has seen."""
    if _pgo is not None:
        own = _sizes.get()
        for name in _SIZES:
            setattr(_pgo, name, own.get(name))


def keep() -> None:
    """The calling thread has compiled."""
    if _pgo is not None:
        _sizes.set({name: getattr(_pgo, name) for name in _SIZES})


def _split_sizes(module: types.ModuleType) -> None:
    global _pgo
    if all(hasattr(module, name) for name in _SIZES):
        _pgo = module


def _split_code(module: types.ModuleType) -> None:
    """Each job has a region of its own (`shim/src/interpose_compiler.cpp`), if this torch has regions."""
    dynamo: Any = module
    if not hasattr(dynamo, "set_eval_frame_isolate_recompiles_id"):
        return
    set_region = shim.compile_region()
    before = set_region(1)
    if dynamo.get_eval_frame_isolate_recompiles_id() == 1:  # torch asks the shim
        dynamo.set_eval_frame_isolate_recompiles_id = set_region
    set_region(before)


def _split_modules(module: types.ModuleType) -> None:
    """It would give a job another one's module, and guards would look at that one's values."""
    names: Any = module
    if hasattr(module, "_import_module"):
        names._import_module = _import_module


def _import_module(name: str) -> types.ModuleType:
    return sys.modules.get(name) or importlib.import_module(name)


def _split_names(module: types.ModuleType) -> None:
    for name in ("_BACKENDS", "_COMPILER_FNS"):
        if isinstance(kept := vars(module).get(name), dict):
            setattr(module, name, JobDict(kept, dict))


def _split_backends() -> None:
    """Before torch has regions (2.13). A compiled form is found by its backend, and those of two calls of
    `torch.compile` are equal if they were asked for the same.
    """
    if hasattr(_EVAL_FRAME, "set_eval_frame_isolate_recompiles_id"):
        return
    for name in _BACKENDS:
        if kind := getattr(torch, name, None):
            equal_within_a_job(kind)


def equal_within_a_job(kind: Any) -> None:
    """Instances that record graphs are not equal if different jobs have made them. Copies are equal to theirs.

    Others may be: who calls a form of another job's then computes the same, and has not compiled it again.
    """
    begin, equal = kind.__init__, kind.__eq__

    @functools.wraps(begin)
    def begin_here(self: Any, *arguments: Any, **named: Any) -> None:
        begin(self, *arguments, **named)
        self._of_job = _number.get()

    @functools.wraps(equal)
    def equal_here(self: Any, other: Any) -> Any:
        same: bool = equal(self, other)
        return same and (not _records_graphs(self) or _job_of(self) == _job_of(other))

    kind.__init__, kind.__eq__ = begin_here, equal_here


def _job_of(backend: Any) -> int:
    number: int = getattr(backend, "_of_job", 0)
    return number


def _records_graphs(backend: Any) -> bool:
    """With inductor's graph trees, which are a job's."""
    inductor: Any = sys.modules.get("torch._inductor.config")
    asked = getattr(backend, "config", {}).get("triton.cudagraphs")
    return bool(asked or backend.compiler_name == "cudagraphs" or (inductor and inductor.triton.cudagraphs))


def install() -> None:
    """Split backends at once, all else as soon as the compiler has been imported."""
    _split_backends()
    imports.when_imported("torch._dynamo.pgo", _split_sizes)
    imports.when_imported("torch._dynamo.eval_frame", _split_code)
    imports.when_imported("torch._dynamo.symbolic_convert", _split_modules)
    imports.when_imported("torch._dynamo.backends.registry", _split_names)


def enter(job: context.JobContext) -> None:
    """Nothing: a job begins with nothing compiled."""


def leave(job: context.JobContext) -> None:
    """Nothing: sizes go with the context, compiled forms with the code."""
