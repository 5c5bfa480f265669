"""Compiling is a section without waits for memory: torch lets one thread compile at a time, and a job that waited
for memory with that lock in hand would keep it from a job that could give some back.

So is an export (`torch.export`), which traces with the compiler's parts, for which torch has no lock.

Whether torch compiles is one flag for the process, and optimizers compute otherwise when it is set: it counts only
in the thread that compiles.
"""

from __future__ import annotations

import functools
import importlib
import threading
import types
from collections.abc import Callable
from typing import Any

import torch

from gpushare.framework import compiler_memory, global_hooks
from gpushare.isolation import context, imports, interrupts
from gpushare.isolation.replace import replace_everywhere
from gpushare.native import shim

_MODULE = "torch._dynamo.convert_frame"
# What traces for an export, and what writes one, or reads it, with names of the process's that it sets for a while.
_EXPORTS = {
    "torch.export._trace": ("_export", "_export_for_training"),
    # Which replaces kernels of operators meanwhile.
    "torch.export.exported_program": ("_decompose_exported_program",),
    "torch._export.serde.serialize": (
        "ExportedProgramSerializer.serialize",
        "ExportedProgramDeserializer.deserialize",
        "GraphModuleDeserializer.deserialize",
        "serialize_torch_artifact",
        "deserialize_torch_artifact",
    ),
}


class _CompileLock:
    """Stands for the lock that is held while one frame is compiled."""

    def __init__(self, lock: Any) -> None:
        self._lock = lock
        self._depth = 0
        self.owner: int | None = None  # thread that compiles

    # What comes from another thread may come after any call but those in `held_back`, and must not leave the lock.

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        taken = False
        try:
            with interrupts.held_back():
                taken = bool(self._lock.acquire(blocking, timeout))
                if taken:
                    self._begin()
        except BaseException:
            if taken:
                self.release()
            raise
        return taken

    def _begin(self) -> None:
        self._depth += 1
        self.owner = threading.get_ident()
        shim.nowait(1)
        if self._depth == 1:
            global_hooks.show_compiler()
            compiler_memory.show_compiler()

    def release(self, *_: object) -> None:
        ended = False
        try:
            with interrupts.held_back():
                self._end()
                ended = True
        finally:
            if not ended:
                self._end()

    def _end(self) -> None:
        try:
            if self._depth == 1:
                compiler_memory.keep()
                global_hooks.hide_from_compiler()
        finally:
            shim.nowait(-1)
            self._depth -= 1
            if self._depth == 0:
                self.owner = None
            self._lock.release()

    __enter__, __exit__ = acquire, release


_compile_lock: _CompileLock | None = None


def _compiles_here() -> bool:
    flag: bool = torch.compiler._is_compiling_flag
    owner = _compile_lock.owner if _compile_lock else None
    return flag and owner in (None, threading.get_ident())


def is_compiling() -> bool:
    """As `torch.compiler.is_compiling`, for the calling thread. In a form that TorchScript can read."""
    if torch.jit.is_scripting():
        return False
    else:  # TorchScript leaves out what can't be reached, by branches
        return _compiles_here()


def has_compiler() -> bool:
    """Whether the calling thread has the compiler's lock, or traces with it."""
    return _compile_lock is not None and _compile_lock.owner == threading.get_ident()


def _exports_here() -> bool:
    flag: bool = torch.compiler._is_exporting_flag
    owner = _compile_lock.owner if _compile_lock else None
    return flag and owner in (None, threading.get_ident())


def is_exporting() -> bool:
    """As `torch.compiler.is_exporting`, for the calling thread: attention takes another path where it is true."""
    if torch.jit.is_scripting():
        return False
    else:
        return _exports_here()


def _guard(module: types.ModuleType) -> None:
    global _compile_lock
    dynamo: Any = module
    dynamo.compile_lock = _compile_lock = _CompileLock(dynamo.compile_lock)


def _alone(function: Callable[..., Any]) -> Callable[..., Any]:
    """With the compiler's lock in hand, where a job calls it."""

    @functools.wraps(function)
    def with_lock(*args: Any, **kwargs: Any) -> Any:
        if context.current() is None:
            return function(*args, **kwargs)
        compiler: Any = importlib.import_module(_MODULE)
        with compiler.compile_lock:
            return function(*args, **kwargs)

    return with_lock


def _guard_exports(module: types.ModuleType) -> None:
    for place in _EXPORTS[module.__name__]:
        kind, _, name = place.rpartition(".")
        owner = getattr(module, kind, None) if kind else module
        if hasattr(owner, name):
            setattr(owner, name, _alone(getattr(owner, name)))


def install() -> None:
    """Replace the lock as soon as the compiler has been imported, which takes long and many scripts never do."""
    imports.when_imported(_MODULE, _guard)
    for name in _EXPORTS:
        imports.when_imported(name, _guard_exports)
    if hasattr(torch.compiler, "_is_compiling_flag"):
        replace_everywhere([(torch.compiler.is_compiling, is_compiling)], but=__name__)
    if hasattr(torch.compiler, "_is_exporting_flag"):
        replace_everywhere([(torch.compiler.is_exporting, is_exporting)], but=__name__)


def enter(job: context.JobContext) -> None:
    """Nothing to set up."""


def leave(job: context.JobContext) -> None:
    """Nothing to take down."""
