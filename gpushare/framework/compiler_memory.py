"""What torch's compiler remembers of a function, per job: its compiled forms, and which sizes have varied.

Both belong to code objects or to their lines in a file, which jobs share when they run one script or compile modules
of one package. A second job would count against the first one's recompile limit, and compile for sizes of any value
where it alone compiles for the one it has.
"""

from __future__ import annotations

import types
from typing import Any

from gpushare.isolation import context, imports
from gpushare.isolation.perjob import PerJob
from gpushare.native import shim

_SIZES = ("_CODE_STATE", "_INIT_CODE_STATE")
_sizes: PerJob[dict[str, Any]] = PerJob({}, dict)
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


def install() -> None:
    """Split both as soon as the compiler has been imported."""
    imports.when_imported("torch._dynamo.pgo", _split_sizes)
    imports.when_imported("torch._dynamo.eval_frame", _split_code)


def enter(job: context.JobContext) -> None:
    """Nothing: a job begins with nothing compiled."""


def leave(job: context.JobContext) -> None:
    """Nothing: sizes go with the context, compiled forms with the code."""
