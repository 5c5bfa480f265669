"""What the interpreter and the library call for a script: hooks of `sys` and `threading`. And `tempfile.tempdir`,
of which the first caller's environment decides.
"""

from __future__ import annotations

import sys
import tempfile
import threading
from collections.abc import Callable
from typing import Any

from gpushare.isolation import attributes, context, system, tracebacks
from gpushare.isolation.perjob import PerJob

_temporary: Any = tempfile
_folder: PerJob[Any] = PerJob(_temporary.tempdir, lambda: None, imports_set_all=True)


def _folder_of_job() -> Any:
    """As `tempfile._gettempdir`, for the calling job."""
    if (folder := _folder.get()) is None:
        folder = _temporary._get_default_tempdir()
        _folder.set(folder)
    return folder


def _telling_of_threads(value: PerJob[Any], default: Any) -> Callable[[Any], None]:
    """The default one is in C, which prints what the error itself has of frames."""

    def tell(told: Any) -> None:
        hook = value.get() or default
        if hook is not default or told.exc_value is None or context.current() is None:
            hook(told)
            return
        frames = told.exc_value.__traceback__
        told.exc_value.__traceback__ = tracebacks.of_the_script(frames)
        try:
            hook(told)
        finally:
            told.exc_value.__traceback__ = frames

    return tell


def install() -> None:
    """C code finds the hooks of `sys` in the module's dictionary, `threading` its own among its names."""
    for name in ("unraisablehook", "displayhook"):
        original = getattr(sys, name)
        value: PerJob[Any] = PerJob(original, None)
        vars(sys)[name] = attributes.calling(value, original)
        system.add_property(name, system.property_of(value))
    hook = threading.excepthook
    of_threads: PerJob[Any] = PerJob(hook, None)
    vars(threading)["excepthook"] = _telling_of_threads(of_threads, hook)
    attributes.make_per_job(threading, "excepthook", of_threads)
    _temporary._gettempdir = _folder_of_job
    attributes.make_per_job(tempfile, "tempdir", _folder)


def enter(job: context.JobContext) -> None:
    """Nothing: a job begins with the host's."""


def leave(job: context.JobContext) -> None:
    """Nothing: values go with the context."""
