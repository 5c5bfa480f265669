"""Levels of forward-mode differentiation (`torch.autograd.forward_ad`, `torch.func.jvp` and what is made of it), of
which torch has one list per process, and `allow_mutation_on_saved_tensors`, of which it has one switch: jobs have them
one after the other. Two at once fail, and what one leaves open fails in all that come later.
"""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any

import torch.autograd.forward_ad
import torch.autograd.graph

from gpushare.framework import compilation, tracing
from gpushare.framework.one_at_a_time import OneAtATime
from gpushare.isolation import context
from gpushare.isolation.replace import replace_everywhere

# Whoever is in the one may want the other.
_used = OneAtATime(
    "list of levels for forward-mode differentiation, and one switch for the mutation of saved tensors,",
    "has left what it has of these",
)
LONGEST_WAIT_S = 120.0
_LONGEST_WITH_LOCK_S = 5.0  # with the compiler or the tracer in hand, for which the other one may be waiting
_forward: Any = torch.autograd.forward_ad
_graph: Any = torch.autograd.graph
_transforms: Any = importlib.import_module("torch._functorch.eager_transforms")
_exit_level = _forward.exit_dual_level


def _begin(job: context.JobContext) -> None:
    has_lock = compilation.has_compiler() or tracing.traces_here()
    _used.begin(job, _LONGEST_WITH_LOCK_S if has_lock else LONGEST_WAIT_S)


def _beginning(function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    def begin(*args: Any, **kwargs: Any) -> Any:
        job = context.job_in_host()
        if job is None:
            return function(*args, **kwargs)
        _begin(job)
        try:
            return function(*args, **kwargs)
        except BaseException:
            _used.end(job)
            raise

    return begin


def _ending(function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    def end(*args: Any, **kwargs: Any) -> Any:
        found = function(*args, **kwargs)
        if job := context.job_in_host():
            _used.end(job)
        return found

    return end


def _leaving_jvp(function: Callable[..., Any]) -> Callable[..., Any]:
    end = _ending(function)

    @wraps(function)
    def leave_jvp() -> None:
        """Torch calls it also where entering was refused: what it says of that would hide why."""
        job = context.job_in_host()
        if job is None or _used.is_of(job):
            end()

    return leave_jvp


def _mutating(function: Callable[..., Any]) -> Callable[..., Any]:
    @contextlib.contextmanager
    @wraps(function)
    def allow(*args: Any, **kwargs: Any) -> Iterator[Any]:
        job = context.job_in_host()
        if job:
            _begin(job)
        is_anothers = False
        try:
            with function(*args, **kwargs) as found:
                try:
                    yield found
                finally:
                    # What a script leaves open may be closed after its job's end, when another one has the switch.
                    is_anothers = job is not None and not _used.is_of(job)
                    flag = _graph._allow_mutation_on_saved_tensors_enabled
        finally:
            if is_anothers:
                _graph._allow_mutation_on_saved_tensors_enabled = flag
            elif job:
                _used.end(job)

    return allow


def install() -> None:
    """Watch where levels are entered and left, and the switch is turned."""
    pairs = []
    for module, name, watch in (
        (_forward, "enter_dual_level", _beginning),
        (_forward, "exit_dual_level", _ending),
        (_transforms, "enter_jvp_nesting", _beginning),
        (_transforms, "exit_jvp_nesting", _leaving_jvp),
        (_graph, "allow_mutation_on_saved_tensors", _mutating),
    ):
        if function := getattr(module, name, None):
            pairs.append((function, watch(function)))
    replace_everywhere(pairs, but=__name__)


def enter(job: context.JobContext) -> None:
    """Nothing: a job begins without a level."""


def leave(job: context.JobContext) -> None:
    """Levels that the script has left open end, as its process would end them."""
    if not _used.is_of(job):
        return
    while _forward._current_level >= 0:
        _exit_level()
    _transforms.JVP_NESTING = 0
    _graph._allow_mutation_on_saved_tensors_enabled = False
    _used.end(job, all_of_it=True)
