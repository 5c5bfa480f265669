"""Operators that a script defines (`torch.library.custom_op("mine::scale")`, `Library("mine", "DEF")`).

Torch has one table of operators, and who defines one anew replaces it for all. So a namespace belongs to the job whose
script first defines something in it. Another job that does so as well gets a namespace of its own with a number behind
its name, under which all functions of `torch.library`, and `torch.ops`, find its operators.
"""

from __future__ import annotations

import inspect
import itertools
import sys
import threading
from collections.abc import Callable
from functools import wraps
from typing import Any

import torch
import torch.library

from gpushare.isolation import attributes, context, interrupts
from gpushare.isolation.perjob import PerJob

# Of `torch.library`: they take an operator's full name first. The first three define what has not been there.
_DEFINE = ("custom_op", "triton_op", "define")
_REFER = (
    *("impl", "impl_abstract", "register_kernel", "register_fake", "register_autograd", "register_autocast"),
    *("register_torch_dispatch", "register_vmap", "get_kernel"),
)
_numbers = itertools.count(2)
_lock = interrupts.whole(threading.Lock())
_owners: dict[str, context.JobContext] = {}  # of namespaces
_namespaces: dict[str, PerJob[Any]] = {}  # of `torch.ops`, where more than one job has them


def _own_names(job: context.JobContext) -> dict[str, str]:
    """What the job's namespaces are called in torch, where that differs."""
    names: dict[str, str] = job.values.setdefault((__name__, "names"), {})
    return names


def _name_in_torch(namespace: str) -> str:
    job = context.current()
    return namespace if job is None else _own_names(job).get(namespace, namespace)


def _claim(namespace: str) -> None:
    """The calling job's script defines something there."""
    job = context.current()
    if job is None or context.importing_shared() or namespace in _own_names(job):
        return
    with _lock:
        owner = _owners.get(namespace)
        if owner is None and not _is_packages(namespace):
            _owners[namespace] = job
        elif owner is not None and owner is not job:
            _give_own(job, namespace)


def _is_packages(namespace: str) -> bool:
    return any(name.startswith(f"{namespace}::") for name in torch._C._dispatch_get_all_op_names())


def _give_own(job: context.JobContext, namespace: str) -> None:
    name = _own_names(job)[namespace] = f"{namespace}__{next(_numbers)}"
    if namespace not in _namespaces:
        found: PerJob[Any] = PerJob(getattr(torch.ops, namespace), None)
        _namespaces[namespace] = found
        attributes.make_per_job(torch.ops, namespace, found)
        vars(torch.ops).pop(namespace, None)  # torch's compiler looks there first
    job.values[_namespaces[namespace]] = getattr(torch.ops, name)


def _translate(name: str) -> str:
    namespace, mark, rest = name.partition("::")
    return f"{_name_in_torch(namespace)}{mark}{rest}" if mark else name


def _taking_names(function: Callable[..., Any], *, defines: bool) -> Callable[..., Any]:
    tells_where = "_stacklevel" in inspect.signature(function).parameters

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        # Torch's errors name the line that registered something: so many frames up, where it is not a decorator.
        if tells_where and (args[1] if len(args) > 1 else kwargs.get("func")) is not None:
            kwargs["_stacklevel"] = kwargs.get("_stacklevel", 1) + 1
        if args and isinstance(args[0], str):
            if defines:
                _claim(args[0].partition("::")[0])
            args = (_translate(args[0]), *args[1:])
        return function(*args, **kwargs)

    return call


def _watch_libraries() -> None:
    library: Any = torch.library.Library
    begin, implement = library.__init__, library.impl

    @wraps(begin)
    def own(self: Any, ns: str, kind: str, dispatch_key: str = "") -> None:
        if kind in ("DEF", "FRAGMENT"):
            _claim(ns)
        begin(self, _name_in_torch(ns), kind, dispatch_key)

    @wraps(implement)
    def own_impl(self: Any, op_name: Any, *args: Any, **kwargs: Any) -> Any:
        name = _translate(op_name) if isinstance(op_name, str) else op_name
        return implement(self, name, *args, **kwargs)

    library.__init__, library.impl = own, own_impl
    _tell_who_makes_libraries()


def _tell_who_makes_libraries() -> None:
    """Torch keeps the file and line that a library is made at, for its warnings: not ours."""
    make = torch._C._dispatch_library

    @wraps(make)
    def own(kind: str, ns: str, dispatch_key: str, file: str = "/dev/null", linenum: int = 0) -> Any:
        if file == __file__:
            script = sys._getframe(3)  # beyond torch's `__init__` and the one before it
            file, linenum = script.f_code.co_filename, script.f_lineno
        return make(kind, ns, dispatch_key, file, linenum)

    torch._C._dispatch_library = own


def install() -> None:
    """Watch who defines operators."""
    for names, defines in ((_DEFINE, True), (_REFER, False)):
        for name in names:
            if function := getattr(torch.library, name, None):
                setattr(torch.library, name, _taking_names(function, defines=defines))
    _watch_libraries()


def enter(job: context.JobContext) -> None:
    """Nothing: a job begins without operators."""


def leave(job: context.JobContext) -> None:
    """Nothing: torch keeps operators that somebody may still hold."""
