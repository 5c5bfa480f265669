"""Hooks that a script registers for all modules or all optimizers run for its own job.

Torch keeps them in dictionaries of `torch.nn.modules.module` and `torch.optim.optimizer`, and looks there at each
call. The first registration puts a dictionary that answers per job in the place of each: until then nothing costs.

Torch's compiler reads what a dictionary stores, past the methods of its class, but only while it holds the compile
lock, and it makes no guards of it. So nothing is stored, and while a job compiles, its own hooks.
"""

from __future__ import annotations

import threading
import types
from collections import OrderedDict
from collections.abc import Callable
from functools import wraps
from typing import Any

import torch.nn.modules.module as nn_module
import torch.optim.optimizer as optimizer

from gpushare.isolation import context, interrupts, switch
from gpushare.isolation.perjob import PerJob
from gpushare.isolation.replace import replace_everywhere

Hooks = OrderedDict[int, Any]


class JobHooks(Hooks):
    """A dictionary of hooks by number, of which each job has its own. What shared modules register holds for all."""

    def __init__(self, host: Hooks) -> None:
        super().__init__()
        self.own: PerJob[Hooks] = PerJob(host, lambda: OrderedDict(host), imports_set_all=True)

    def store(self, hooks: Hooks) -> None:
        """What the compiler sees: these hooks and nothing else."""
        for number in list(OrderedDict.__iter__(self)):
            OrderedDict.__delitem__(self, number)
        for number, hook in hooks.items():
            OrderedDict.__setitem__(self, number, hook)


def _of_the_job(name: str) -> Callable[..., Any]:
    def method(self: JobHooks, *args: Any, **kwargs: Any) -> Any:
        return getattr(self.own.get(), name)(*args, **kwargs)

    return method


for _name in (
    *("__len__", "__iter__", "__reversed__", "__contains__", "__getitem__", "__setitem__", "__delitem__"),
    *("__eq__", "__ne__", "__repr__", "keys", "values", "items", "get", "pop", "popitem", "setdefault"),
    *("update", "clear", "copy", "move_to_end"),
):
    setattr(JobHooks, _name, _of_the_job(_name))

_lock = interrupts.whole(threading.RLock())
_dictionaries: dict[str, JobHooks] = {}  # by their names in torch


def _split() -> None:
    """Put a dictionary per job in the place of torch's, once."""
    global _dictionaries
    if _dictionaries:
        return
    made = {}
    for module in (nn_module, optimizer):
        for name, value in list(vars(module).items()):
            if name.startswith("_global_") and isinstance(value, OrderedDict):
                made[name] = JobHooks(value)
    for name, hooks in made.items():
        setattr(nn_module if hasattr(nn_module, name) else optimizer, name, hooks)
    _dictionaries = made  # at once: a thread that compiles may be looking


def _splitting(register: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(register)
    def split_and_register(*args: Any, **kwargs: Any) -> Any:
        with _lock:  # against `leave`: torch notes the kind of backward hooks before it has the hook
            _split()
            return register(*args, **kwargs)

    return split_and_register


def show_compiler() -> None:
    """The calling thread begins to compile, and what it compiles calls its job's hooks."""
    for hooks in _dictionaries.values():
        hooks.store(hooks.own.get())


def hide_from_compiler() -> None:
    """The calling thread has compiled."""
    for hooks in _dictionaries.values():
        hooks.store(OrderedDict())


def install() -> None:
    """Watch the functions that register."""
    pairs = [
        (function, _splitting(function))
        for module, start in ((nn_module, "register_module_"), (optimizer, "register_optimizer_"))
        for name, function in list(vars(module).items())
        if name.startswith(start) and isinstance(function, types.FunctionType)
    ]
    replace_everywhere(pairs, but=__name__)


def enter(job: context.JobContext) -> None:
    """Nothing: a job begins without hooks."""


def leave(job: context.JobContext) -> None:
    """The hooks go with the context. With the last backward hook goes the choice between torch's two kinds."""
    with _lock:
        if backward := _dictionaries.get("_global_backward_hooks"):
            others = [backward.own.of(other) for other in switch.live if other is not job]
            if not any([backward.own.host, *others]):
                nn_module._global_is_full_backward_hook = None
