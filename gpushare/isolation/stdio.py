"""`sys.stdin`, `sys.stdout` and `sys.stderr` per job.

C code reads `sys.stdout` in the module's dictionary, so the objects there are real files that pass every
call on to the calling job's own.
"""

from __future__ import annotations

import io
import os
import sys
from typing import Any, TextIO

from gpushare.isolation import context


class _Stream(io.TextIOBase):
    """Passes on what it is asked to the calling job's stream, else to the host's."""

    def __init__(self, attribute: str, host: TextIO) -> None:
        self._attribute = attribute
        self._host = host

    def _stream(self) -> TextIO:
        job = context.current()
        stream: TextIO = getattr(job, self._attribute) if job else self._host
        return stream

    def __getattribute__(self, name: str) -> Any:
        if name in ("_stream", "_attribute", "_host", "__class__"):
            return object.__getattribute__(self, name)
        return getattr(object.__getattribute__(self, "_stream")(), name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in ("_attribute", "_host"):
            object.__setattr__(self, name, value)
        else:
            setattr(self._stream(), name, value)

    # Looked up on the class, not on the object.
    def __iter__(self) -> Any:
        return iter(self._stream())

    def __next__(self) -> Any:
        return next(self._stream())

    def __enter__(self) -> Any:
        return self._stream().__enter__()

    def __exit__(self, *details: Any) -> None:
        self._stream().__exit__(*details)


def job_output(descriptor: int) -> TextIO:
    """A job's stdout or stderr: the bytes that python writes to a pipe, but line by line."""
    raw = os.fdopen(descriptor, "wb")
    return io.TextIOWrapper(raw, encoding="utf-8", errors="backslashreplace", line_buffering=True)


def job_input(alone: bool) -> TextIO:
    """The only job reads the terminal; of several, each sees end-of-file."""
    return sys.__stdin__ if alone and sys.__stdin__ else open(os.devnull, encoding="utf-8")


def install() -> None:
    """Replace the three streams."""
    sys.stdin = _Stream("stdin", sys.stdin)
    sys.stdout = _Stream("stdout", sys.stdout)
    sys.stderr = _Stream("stderr", sys.stderr)
