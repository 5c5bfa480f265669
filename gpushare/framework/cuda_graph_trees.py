"""Inductor's graph trees (`torch.compile(mode="reduce-overhead")`) beside other jobs.

A tree belongs to the thread that makes it, but some things around it are one for the process: the lock that is held
while a graph is warmed up or recorded, with which one job would wait for memory while the other wants to give some
back; the counters by which a tree tells one iteration from the next, so that one job's step would free the outputs
that another one's backward pass still needs; the tables in which compiled code finds streams, the one of a recording
among them; whether outputs of graphs are known to autograd, which each reset switches off for all; and whether cuDNN's
benchmark empties the allocator's cache, which nobody switches on again here.
"""

from __future__ import annotations

import sys
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from gpushare.isolation import context, imports
from gpushare.isolation.perjob import PerJob
from gpushare.isolation.replace import replace_everywhere
from gpushare.native import shim

_TREES, _GENERATIONS = "torch._inductor.cudagraph_trees", "torch._dynamo.mutation_guard"
_TABLES = "torch._dynamo.graph_bytecode_inputs"


class LockPerJob:
    """Stands for a lock: each job, and the host, has one of its own."""

    def __init__(self) -> None:
        self._own: PerJob[threading.Lock] = PerJob(threading.Lock(), threading.Lock)

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        return self._own.get().acquire(blocking, timeout)

    def release(self) -> None:
        self._own.get().release()

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()


class TablePerJob:
    """Stands for a dictionary or a list: each job, and the host, has one of its own."""

    def __init__(self, table: Any) -> None:
        self._own: PerJob[Any] = PerJob(table, type(table))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._own.get(), name)

    def __len__(self) -> int:
        return len(self._own.get())

    def __contains__(self, key: object) -> bool:
        return key in self._own.get()

    def __iter__(self) -> Iterator[Any]:
        return iter(self._own.get())

    def __getitem__(self, key: Any) -> Any:
        return self._own.get()[key]

    def __setitem__(self, key: Any, value: Any) -> None:
        self._own.get()[key] = value


def with_attribute_per_job(kind: type, name: str) -> type:
    """A class like this one, of which each job reads and sets an attribute of its own; it begins as it is now."""
    meta = type(f"{kind.__name__}PerJob", (type(kind),), {name: _per_job(getattr(kind, name))})
    made: type = meta(kind.__name__, (kind,), {"__module__": kind.__module__})
    return made


def give_attribute_per_job(owner: Any, name: str) -> None:
    """The same of an object."""
    kind = type(owner)
    names = {"__slots__": (), "__module__": kind.__module__, name: _per_job(getattr(owner, name))}
    owner.__class__ = type(kind.__name__, (kind,), names)


def _per_job(first: Any) -> property:
    value: PerJob[Any] = PerJob(first, None)
    return property(lambda _: value.get(), lambda _, new: value.set(new))


def _split_trees(module: Any) -> None:
    module.MarkStepBox = with_attribute_per_job(module.MarkStepBox, "mark_step_counter")
    if hasattr(module, "graph_capture_lock"):  # since torch 2.13
        module.graph_capture_lock = LockPerJob()
    if not hasattr(module, "_initialize_tls"):
        module.get_obj = _in_any_thread(module.get_obj)
    module.disable_conv_cache_emptying = _without_emptying
    switch = module._set_cached_tensors_enabled
    module._set_cached_tensors_enabled = lambda enabled: switch(True) if enabled else None


@contextmanager
def _without_emptying() -> Iterator[None]:
    names: Any = torch._C
    names._cudnn_set_conv_benchmark_empty_cache(False)
    yield


def _in_any_thread(get_obj: Callable[[Any, str], Any]) -> Callable[[Any, str], Any]:
    """Before torch 2.13 only the thread that imports the module, and those of autograd, could have trees."""
    names: Any = torch._C
    stored: dict[str, Callable[[], Any]] = {
        "tree_manager_containers": dict,
        "tree_manager_locks": lambda: defaultdict(threading.Lock),
    }

    def get(local: Any, name: str) -> Any:
        if not hasattr(local, name) and not names._is_key_in_tls(name):
            for each, make in stored.items():
                setattr(local, each, make())
                names._stash_obj_in_tls(each, getattr(local, each))
        return get_obj(local, name)

    return get


def _split_generations(module: Any) -> None:
    old = module.GenerationTracker
    if isinstance(old, type):
        replace_everywhere([(old, with_attribute_per_job(old, "generation"))], but=__name__)
    else:  # from torch 2.15 on
        give_attribute_per_job(old, "generation")


def _split_tables(module: Any) -> None:
    names = ("index_to_bytecode_constructor", "index_to_external_object_weakref", "keep_alive")
    tables = [getattr(module, name) for name in names if hasattr(module, name)]
    replace_everywhere([(table, TablePerJob(table)) for table in tables], but=__name__)


def install() -> None:
    """Where the run is on a GPU, as soon as the compiler has been imported."""
    if shim.device() >= 0:
        imports.when_imported(_TREES, _split_trees)
        imports.when_imported(_GENERATIONS, _split_generations)
        imports.when_imported(_TABLES, _split_tables)


def enter(job: context.JobContext) -> None:
    """Nothing: trees are made by the first graph."""


def leave(job: context.JobContext) -> None:
    """The graphs of the job's thread go, and their memory with them."""
    trees: Any = sys.modules.get(_TREES)
    if trees is not None and shim.device() >= 0:
        trees.reset_cudagraph_trees()
