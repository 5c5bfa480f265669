"""Attributes of the module `sys` per job, for reading and for assignment.

A property of the module's class comes before the module's own attribute, also for compiled lookups. C code
that reads the module's dictionary finds the proxies of `stdio.py` there, which must be installed before.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from gpushare.isolation import attributes, context, stdio
from gpushare.isolation.perjob import PerJob

_ATTRIBUTES: dict[str, PerJob[Any]] = {}
_UNSET = object()
_FROM_3_13 = sys.version_info >= (3, 13)  # it has other words for what it ignores
_unraisable: Any


class _Sys(types.ModuleType):
    # importlib makes modules with type(sys)(name): those must be ordinary ones.
    def __new__(cls, name: str, doc: str | None = None) -> Any:
        return types.ModuleType(name, doc)


def property_of(value: PerJob[Any]) -> property:
    """For an attribute that each job has for itself."""
    return property(lambda _: value.get(), lambda _, new: value.set(new))


def _stream_property(name: str) -> property:
    """The job's own stream, or what it assigned.

    A shared module that is just being imported may keep what it reads for all jobs: it gets the proxy.
    """

    def read(module: types.ModuleType) -> Any:
        job = context.current()
        if job is None:
            return stdio.host_stream(name)
        if (assigned := job.values.get(("sys", name), _UNSET)) is not _UNSET:
            return assigned
        return stdio.proxy(name) if context.importing_shared() else getattr(job, name)

    def write(module: types.ModuleType, value: Any) -> None:
        job = context.current()
        if job is None:
            stdio.set_host_stream(name, value)
        elif value is getattr(job, name):
            job.values.pop(("sys", name), None)
        else:
            job.values["sys", name] = value

    return property(read, write)


def _current_job() -> context.JobContext:
    job = context.current()
    assert job
    return job


def _stream_of_job(name: str) -> Any:
    return getattr(_current_job(), name)


def add_property(name: str, value: property) -> None:
    """Make one more attribute of `sys` per job."""
    setattr(_Sys, name, value)


def install() -> None:
    """Give the module `sys` a class of our own."""
    global _unraisable
    _unraisable = _type_of_unraisable()
    _ATTRIBUTES["argv"] = PerJob(sys.argv, lambda: _current_job().argv)
    _ATTRIBUTES["excepthook"] = PerJob(sys.excepthook, lambda: sys.__excepthook__)
    for name, value in _ATTRIBUTES.items():
        add_property(name, property_of(value))
    for name in ("stdin", "stdout", "stderr"):
        add_property(name, _stream_property(name))
        original: PerJob[Any] = PerJob(getattr(sys, f"__{name}__"), partial(_stream_of_job, name))
        add_property(f"__{name}__", property_of(original))
    attributes.give_class(sys, _Sys)


def let_go_of_streams(job: context.JobContext) -> bool:
    """Flush what the script assigned to `sys.stdout` and `sys.stderr`, and let its first streams stand there again.

    As the interpreter does at its end, so what only `sys` holds is closed. False: output was lost.
    """
    with _without_frames():
        flushed = [_flush(name, job.values.pop(("sys", name), None)) for name in ("stdout", "stderr")]
    return flushed[0]  # of stderr the interpreter does not tell


@contextmanager
def _without_frames() -> Iterator[None]:
    """From Python 3.13 on a stream that can't be closed says so; where the interpreter ends, from no line of code."""
    told = sys.unraisablehook
    if _FROM_3_13:
        sys.unraisablehook = partial(_tell_without_frame, told)
    try:
        yield
    finally:
        if _FROM_3_13:
            sys.unraisablehook = told


def _tell_without_frame(tell: Callable[[Any], object], ignored: Any) -> None:
    """Without the frame of ours that let go of the stream, if nothing else was under way."""
    frames = ignored.exc_traceback
    ours = frames is not None and frames.tb_next is None and frames.tb_frame.f_globals is globals()
    if ours:
        ignored = _unraisable((ignored.exc_type, ignored.exc_value, None, ignored.err_msg, ignored.object))
    tell(ignored)


def _flush(name: str, stream: Any) -> bool:
    try:
        if stream is not None and not getattr(stream, "closed", False):
            stream.flush()
    except Exception as error:
        if name == "stdout" and _FROM_3_13:
            when = "while" if sys.version_info >= (3, 14) else "on"
            ignore(error, f"Exception ignored {when} flushing sys.stdout", None)
        elif name == "stdout":
            ignore(error, None, stream)
        return False
    return True


def _shown(culprit: object) -> str:
    try:
        return repr(culprit)
    except Exception:  # of the script's own class
        return object.__repr__(culprit)


def ignore(error: BaseException, where: str | None, culprit: object) -> None:
    """Tell of an error that changes nothing, as the interpreter does. To be called by who has called the culprit."""
    if _FROM_3_13 and where and culprit is not None:
        where, culprit = f"{where} {_shown(culprit)}", None
    frames = error.__traceback__ and error.__traceback__.tb_next
    sys.unraisablehook(_unraisable((type(error), error, frames, where, culprit)))


def _type_of_unraisable() -> Any:
    """What `sys.unraisablehook` is given, which has no name: seen in an error that is ignored."""

    class Dying:
        def __del__(self) -> None:
            raise ValueError

    seen: list[Any] = []
    before, sys.unraisablehook = sys.unraisablehook, seen.append
    Dying()
    sys.unraisablehook = before
    return type(seen.pop())


def enter(job: context.JobContext) -> None:
    """Nothing: values are made when they are first asked for."""


def leave(job: context.JobContext) -> None:
    """Nothing: values go with the context."""
