"""`sys.stdin`, `sys.stdout` and `sys.stderr` per job: the streams, and the proxies that stand for them.

C code reads `sys.stdout` in the module's dictionary, so the objects there are real files that pass every
call on to the calling job's stream. `system.py` answers Python code.
"""

from __future__ import annotations

import io
import os
import sys
from typing import Any, TextIO

from gpushare.isolation import context

_NAMES = ("stdin", "stdout", "stderr")
_host: dict[str, TextIO] = {}
_proxies: dict[str, Any] = {}


class _Stream(io.TextIOBase):
    """Passes on what it is asked to a stream of the calling job, else to the host's.

    With `assigned` to what the script has assigned to `sys.NAME` last, else to the stream it began with.
    """

    def __init__(self, name: str, *, assigned: bool) -> None:
        self._name, self._assigned = name, assigned

    def _stream(self) -> TextIO:
        job = context.current()
        if job is None:
            return _host[self._name]
        stream: TextIO = getattr(job, self._name)
        return job.values.get(("sys", self._name), stream) if self._assigned else stream

    def __getattribute__(self, name: str) -> Any:
        if name in ("_stream", "_name", "_assigned", "__class__"):
            return object.__getattribute__(self, name)
        return getattr(object.__getattribute__(self, "_stream")(), name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in ("_name", "_assigned"):
            object.__setattr__(self, name, value)
        else:
            setattr(self._stream(), name, value)

    # Looked up on the class, not on the object.
    def __repr__(self) -> str:
        return repr(self._stream())

    def __iter__(self) -> Any:
        return iter(self._stream())

    def __next__(self) -> Any:
        return next(self._stream())

    def __enter__(self) -> Any:
        return self._stream().__enter__()

    def __exit__(self, *details: Any) -> None:
        self._stream().__exit__(*details)


def job_output(name: str, descriptor: int, errors: str) -> TextIO:
    """A job's `stdout` or `stderr`: the bytes that python writes to a pipe, but line by line. Whoever made the
    descriptor closes it.

    The encoding is what the interpreter has chosen for the host, by the locale, PYTHONIOENCODING or PYTHONUTF8; and so
    is what becomes of a character that it lacks, unless `errors` is more lenient than "strict": stderr has its own.
    """
    chosen = _host["stdout"]
    raw = os.fdopen(
        descriptor, "wb", closefd=False
    )  # as the interpreter has its own: who closes it may write on there
    errors = str(chosen.errors) if errors == "strict" else errors
    return _called(name, io.TextIOWrapper(raw, encoding=chosen.encoding, errors=errors, line_buffering=True))


def job_input(alone: bool) -> TextIO:
    """The only job reads the terminal; of several, each sees end-of-file."""
    chosen = sys.__stdin__
    if alone and chosen:
        return chosen
    encoding, errors = (chosen.encoding, chosen.errors) if chosen else ("utf-8", None)
    return _called("stdin", io.TextIOWrapper(open(os.devnull, "rb"), encoding=encoding, errors=errors))


def _called(name: str, stream: io.TextIOWrapper) -> TextIO:
    """As the interpreter calls its own (pylifecycle.c, create_stdio)."""
    named: Any = stream
    named.buffer.raw.name = f"<{name}>"
    named.mode = "r" if name == "stdin" else "w"
    return stream


def host_stream(name: str) -> TextIO:
    """The host's own."""
    return _host[name]


def set_host_stream(name: str, stream: TextIO) -> None:
    """Replace the host's own."""
    _host[name] = stream


def proxy(name: str) -> TextIO:
    """Stands for the stream with which each job began."""
    stream: TextIO = _proxies[name]
    return stream


def install() -> None:
    """Replace the three streams in the dictionary of `sys`."""
    for name in _NAMES:
        _host[name] = getattr(sys, name)
        _proxies[name] = _Stream(name, assigned=False)
        vars(sys)[name] = _Stream(name, assigned=True)


def enter(job: context.JobContext) -> None:
    """Nothing: the job was made with its streams."""


def leave(job: context.JobContext) -> None:
    """Nothing: the streams are closed when the job's last words are out."""
