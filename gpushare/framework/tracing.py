"""What torch sets once per process while it traces a model (`torch.jit.trace`, `torch.fx`), per job.

`torch.fx` traces for one thread at a time, which is a section without waits for memory, as compiling is: what it
replaces meanwhile among modules' names has one value. Methods of modules that it replaces are the job's own.
"""

from __future__ import annotations

import threading
import warnings
from functools import wraps
from typing import Any

import torch
import torch.fx._symbolic_trace
import torch.jit._builtins
import torch.jit._trace

from gpushare.isolation import attributes, context, interrupts, patches
from gpushare.isolation.perjob import PerJob
from gpushare.isolation.replace import replace_everywhere
from gpushare.native import shim

_fx: Any = torch.fx._symbolic_trace
_trace = _fx.Tracer.trace
_lock = interrupts.whole(threading.RLock())
_tracing: int | None = None  # thread


@wraps(_trace)
def _trace_alone(self: Any, *args: Any, **kwargs: Any) -> Any:
    global _tracing
    with _lock:
        before, begun, at_end = _tracing, False, interrupts.held_back()
        try:
            with interrupts.held_back():
                _tracing = threading.get_ident()
                shim.nowait(1)
                begun = True
            traced = _trace(self, *args, **kwargs)
            at_end.begin()
            return traced
        finally:
            _tracing = before
            if begun:
                shim.nowait(-1)
            at_end.end()


def traces_here() -> bool:
    """Whether the calling thread does, so that no other one can."""
    return _tracing == threading.get_ident()


def is_fx_tracing() -> bool:
    """As `torch.fx._symbolic_trace.is_fx_tracing`, for the calling thread."""
    flag: bool = _fx._is_fx_tracing_flag
    return flag and _tracing in (None, threading.get_ident())


def is_fx_symbolic_tracing() -> bool:
    """As `torch.fx._symbolic_trace.is_fx_symbolic_tracing`, for the calling thread."""
    return is_fx_tracing() and not torch.compiler.is_compiling()


_defining = interrupts.whole(threading.RLock())


def _define_interfaces_one_by_one() -> None:
    """Torch looks whether there is one of this name, and chooses another one then; but two threads may look at once."""
    functions: Any = torch._C
    define = functions._jit_script_interface_compile

    @wraps(define)
    def _jit_script_interface_compile(*args: Any) -> Any:
        with _defining:
            return define(*args)

    functions._jit_script_interface_compile = _jit_script_interface_compile


def install() -> None:
    """Also the names of modules in what `torch.jit.trace` records, and what TorchScript takes for `warnings.warn`."""
    _fx.Tracer.trace = _trace_alone
    if hasattr(torch.jit._builtins, "_register_builtin"):  # it knows functions by their `id()`
        torch.jit._builtins._register_builtin(warnings.warn, "aten::warn")
    _define_interfaces_one_by_one()
    patches.also_by_packages(torch.nn.Module)
    if hasattr(_fx, "_is_fx_tracing_flag"):  # from torch 2.14 on each thread has its own
        named = [(getattr(_fx, f.__name__, None), f) for f in (is_fx_tracing, is_fx_symbolic_tracing)]
        replace_everywhere([(before, after) for before, after in named if before], but=__name__)
    if hasattr(torch.jit._trace, "_trace_module_map"):
        names: PerJob[object] = PerJob(None, None)
        attributes.make_per_job(torch.jit._trace, "_trace_module_map", names)


def enter(job: context.JobContext) -> None:
    """Nothing: a job begins without a trace."""


def leave(job: context.JobContext) -> None:
    """Nothing: values go with the context."""
