"""`logging` per job: handlers, levels, filters, propagation of every logger, also of those that jobs share.

The logger objects stay the ones that libraries hold; what a script can set on them is kept per job. A shared
module that configures its loggers when it is imported does so for all jobs. Likewise the names of levels, the class
of new loggers, what makes records, and whether warnings are logged.
"""

from __future__ import annotations

import copy
import logging
import warnings
import weakref
from collections.abc import Callable, Iterator, MutableMapping
from typing import Any

from gpushare.isolation import attributes, context, ownership, stdio
from gpushare.isolation.perjob import PerJob
from gpushare.native import shim


class _Attribute:
    """An attribute of a logger, per job; a job begins with what the host has."""

    def __init__(self, name: str, default: Callable[[], Any]) -> None:
        self._name, self._default = name, default

    def __get__(self, owner: Any, kind: type) -> Any:
        if owner is None:
            return self
        job = _job()
        if job is None:
            return self._of_host(owner)
        try:
            return job.values[self, owner]
        except KeyError:
            return job.values.setdefault((self, owner), copy.copy(self._of_host(owner)))

    def __set__(self, owner: Any, value: Any) -> None:
        job = _job()
        if job is None:
            vars(owner)[self._name] = value
        else:
            job.values[self, owner] = value

    def _of_host(self, owner: Any) -> Any:
        try:
            return vars(owner)[self._name]
        except KeyError:
            return vars(owner).setdefault(self._name, self._default())


class _Handlers:
    """Stands for `logging._handlerList`: the handlers that are flushed and closed at the end."""

    def __init__(self, host: list[Any]) -> None:
        self.lists: PerJob[list[Any]] = PerJob(host, list, imports_set_all=True)

    def append(self, item: Any) -> None:
        self.lists.get().append(item)

    def remove(self, item: Any) -> None:
        self.lists.get().remove(item)

    def __getitem__(self, index: Any) -> Any:
        return self.lists.get()[index]

    def __delitem__(self, index: Any) -> None:
        del self.lists.get()[index]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.lists.get())

    def __len__(self) -> int:
        return len(self.lists.get())


class _Names:
    """Stands for `logging._handlers`: handlers by name."""

    def __init__(self, host: Any) -> None:
        self._maps: PerJob[Any] = PerJob(host, weakref.WeakValueDictionary, imports_set_all=True)

    def __getitem__(self, name: str) -> Any:
        return self._maps.get()[name]

    def __setitem__(self, name: str, handler: Any) -> None:
        self._maps.get()[name] = handler

    def __delitem__(self, name: str) -> None:
        del self._maps.get()[name]

    def __contains__(self, name: object) -> bool:
        return name in self._maps.get()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._maps.get(), name)


class _Levels(MutableMapping[Any, Any]):
    """Stands for a table of levels and their names: what the job has added, and the host's."""

    def __init__(self, host: dict[Any, Any]) -> None:
        self._host = host
        self._added: PerJob[dict[Any, Any]] = PerJob(host, dict, imports_set_all=True)

    def __getitem__(self, key: Any) -> Any:
        added = self._added.get()
        return added[key] if key in added else self._host[key]

    def __setitem__(self, key: Any, value: Any) -> None:
        self._added.get()[key] = value

    def __delitem__(self, key: Any) -> None:
        del self._added.get()[key]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.copy())

    def __len__(self) -> int:
        return len(self.copy())

    def copy(self) -> dict[Any, Any]:
        return {**self._host, **self._added.get()}


_handlers: _Handlers
_record: PerJob[Any] = PerJob(logging.getLogRecordFactory(), None, imports_set_all=True)
_kind: PerJob[Any] = PerJob(logging.getLoggerClass(), None, imports_set_all=True)
_kinds: PerJob[list[type]] = PerJob([], list)  # all that were set
_shown: PerJob[Any] = PerJob(None, None, imports_set_all=True)  # what shows warnings while they are logged


def _job() -> context.JobContext | None:
    return None if context.importing_shared() else context.current()


def _guard_waiting() -> None:
    """A handler's lock is wanted by all jobs that share it: nobody waits for memory with it in hand."""
    kind: Any = logging.Handler
    acquire, release = kind.acquire, kind.release

    def acquire_guarded(self: logging.Handler) -> None:
        acquire(self)
        shim.nowait(1)

    def release_guarded(self: logging.Handler) -> None:
        shim.nowait(-1)
        release(self)

    kind.acquire, kind.release = acquire_guarded, release_guarded


def _redirect_handlers() -> None:
    """What a module that was imported before any job (torch) writes goes to the job that logs."""
    for handler in [reference() for reference in vars(logging)["_handlerList"]]:
        stream = vars(handler).get("stream") if handler else None
        for name in ("stdout", "stderr"):
            if stream is stdio.host_stream(name):
                handler.stream = stdio.proxy(name)


def _set_kind(klass: Any) -> None:
    """As `logging.setLoggerClass`, for the calling job."""
    if klass != logging.Logger and not issubclass(klass, logging.Logger):
        raise TypeError("logger not derived from logging.Logger: " + klass.__name__)
    _kind.set(klass)
    if context.current() and not context.importing_shared() and klass is not logging.Logger:
        _kinds.get().append(klass)


def _capture_warnings(capture: bool) -> None:
    """As `logging.captureWarnings`, for the calling job."""
    before = _shown.get()
    if capture and before is None:
        _shown.set(warnings.showwarning)
        warnings.showwarning = _showwarning
    elif not capture and before is not None:
        warnings.showwarning = before
        _shown.set(None)


def _showwarning(
    message: Any, category: Any, filename: str, lineno: int, file: Any = None, line: Any = None
) -> None:
    if file is None:
        _log_warning(message, category, filename, lineno, file, line)
    elif show := _shown.get():
        show(message, category, filename, lineno, file, line)


_log_warning: Any = vars(logging)["_showwarning"]
# Frames of logging's own file are left out where a record says who logged.
_showwarning.__code__ = _showwarning.__code__.replace(co_filename=vars(logging)["_srcfile"])


def _keep_choices() -> None:
    names: Any = logging
    names._levelToName, names._nameToLevel = _Levels(names._levelToName), _Levels(names._nameToLevel)
    names._logRecordFactory = attributes.calling(_record, _record.host)
    names.setLogRecordFactory, names.getLogRecordFactory = _record.set, _record.get
    names.setLoggerClass, names.getLoggerClass = _set_kind, _kind.get
    manager: Any = logging.Manager
    own = vars(logging.root.manager).pop("loggerClass")
    assert own is None  # no library has set the manager's own
    manager.loggerClass = property(
        lambda self: vars(self).get("loggerClass") or _kind.get(),
        lambda self, klass: vars(self).update(loggerClass=klass),
    )
    names.captureWarnings, names._showwarning = _capture_warnings, _showwarning


def install() -> None:
    """Replace the attributes of the classes, and the two registries of handlers."""
    global _handlers
    _guard_waiting()
    _redirect_handlers()
    for kind, name, default in (
        (logging.Filterer, "filters", list),
        (logging.Logger, "handlers", list),
        (logging.Logger, "_cache", dict),
        (logging.Logger, "level", lambda: logging.NOTSET),
        (logging.Logger, "propagate", lambda: True),
        (logging.Logger, "disabled", lambda: False),
        (logging.Manager, "_disable", lambda: 0),
    ):
        setattr(kind, name, _Attribute(name, default))
    names: Any = logging
    _handlers = names._handlerList = _Handlers(names._handlerList)
    names._handlers = _Names(names._handlers)
    _keep_choices()


def enter(job: context.JobContext) -> None:
    """Nothing: state is copied when it is first asked for."""


def _heir(job: context.JobContext, kind: type) -> type:
    """The class of the same name of a job that goes on, which has another copy of the package, say."""
    place = kind.__module__, kind.__qualname__
    kinds = (each for other in ownership.live_jobs() if other is not job for each in _kinds.of(other))
    return next((each for each in kinds if (each.__module__, each.__qualname__) == place), logging.Logger)


def leave(job: context.JobContext) -> None:
    """Flush and close the job's handlers, as the interpreter does at its end.

    Loggers that it has made of a class of its own become another job's, or ordinary ones: others find them by their
    names.
    """
    logging.shutdown(_handlers.lists.of(job))
    if own := _kinds.of(job):
        for logger in list(logging.root.manager.loggerDict.values()):
            if type(logger) in own:
                logger.__class__ = _heir(job, type(logger))
