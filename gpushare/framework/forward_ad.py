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

from gpushare.framework.one_at_a_time import OneAtATime
from gpushare.isolation import context
from gpushare.isolation.replace import replace_everywhere

_levels = OneAtATime("list of levels for forward-mode differentiation", "has left its own")
_mutations = OneAtATime("switch for the mutation of saved tensors", "has turned its own off")
_forward: Any = torch.autograd.forward_ad
_graph: Any = torch.autograd.graph
_transforms: Any = importlib.import_module("torch._functorch.eager_transforms")
_exit_level = _forward.exit_dual_level


def _beginning(function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    def begin(*args: Any, **kwargs: Any) -> Any:
        job = context.current()
        if job is None:
            return function(*args, **kwargs)
        _levels.begin(job)
        try:
            return function(*args, **kwargs)
        except BaseException:
            _levels.end(job)
            raise

    return begin


def _ending(function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    def end(*args: Any, **kwargs: Any) -> Any:
        found = function(*args, **kwargs)
        if job := context.current():
            _levels.end(job)
        return found

    return end


def _mutating(function: Callable[..., Any]) -> Callable[..., Any]:
    @contextlib.contextmanager
    @wraps(function)
    def allow(*args: Any, **kwargs: Any) -> Iterator[Any]:
        job = context.current()
        if job:
            _mutations.begin(job)
        try:
            with function(*args, **kwargs) as found:
                yield found
        finally:
            if job:
                _mutations.end(job)

    return allow


def install() -> None:
    """Watch where levels are entered and left, and the switch is turned."""
    pairs = []
    for module, name, watch in (
        (_forward, "enter_dual_level", _beginning),
        (_forward, "exit_dual_level", _ending),
        (_transforms, "enter_jvp_nesting", _beginning),
        (_transforms, "exit_jvp_nesting", _ending),
        (_graph, "allow_mutation_on_saved_tensors", _mutating),
    ):
        if function := getattr(module, name, None):
            pairs.append((function, watch(function)))
    replace_everywhere(pairs, but=__name__)


def enter(job: context.JobContext) -> None:
    """Nothing: a job begins without a level."""


def leave(job: context.JobContext) -> None:
    """Levels that the script has left open end, as its process would end them."""
    if _levels.end(job, all_of_it=True):
        while _forward._current_level >= 0:
            _exit_level()
        _transforms.JVP_NESTING = 0
    if _mutations.end(job, all_of_it=True):
        _graph._allow_mutation_on_saved_tensors_enabled = False
