"""The standard streams of the program: a daemon or a cron job may start it without some of them."""

from __future__ import annotations

import io
import os
import sys

_NAMES = ("stdin", "stdout", "stderr")


def open_closed() -> None:
    """Put nothing, to be read and written, where a standard stream is closed.

    What is opened gets the lowest free number. So that of a pipe or a file of ours would be that of a stream, and the
    host, to which both are given, would lose one of them.
    """
    for descriptor, name in enumerate(_NAMES):
        if not _is_open(descriptor):
            # The lowest free number is this one, as those below are open by now.
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(descriptor, "r" if name == "stdin" else "w", closefd=False))


def show_anything() -> None:
    """A job may write what the terminal can't show."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _is_open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True
