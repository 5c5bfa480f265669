"""Tracebacks and stacks that jobs print: without the frames of gpushare.

Under what a script calls there may be a function of ours, which stands in for one of Python's or torch's, and below
the script's first line there is the host. Neither is there under plain python. A traceback that begins in the host is
left whole, as are those of the host's own threads; and so are all with GPUSHARE_FRAMES=1 in the host's environment,
for who looks for a defect of ours.
"""

from __future__ import annotations

import os
import sys
import traceback
import types
from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any

from gpushare.isolation import context

_HOST = "gpushare.host."
_KEPT = os.environ.get("GPUSHARE_FRAMES") == "1"


def _module_of(frame: types.FrameType) -> str:
    return str(frame.f_globals.get("__name__"))


def _is_ours(frame: types.FrameType) -> bool:
    # By the module: some code of ours bears another file's name, for Python to leave it out.
    return _module_of(frame).startswith("gpushare.")


def of_the_script(tb: types.TracebackType | None) -> types.TracebackType | None:
    """The traceback again, without frames of ours: for what prints it in C."""
    if _KEPT:
        return tb
    frames: list[types.TracebackType] = []
    while tb is not None:
        if not _is_ours(tb.tb_frame):
            frames.append(tb)
        tb = tb.tb_next
    made: types.TracebackType | None = None
    for each in reversed(frames):
        made = types.TracebackType(made, each.tb_frame, each.tb_lasti, each.tb_lineno)
    return made


def _of_traceback(walk: Callable[..., Iterator[Any]]) -> Callable[..., Iterator[Any]]:
    """:param walk: yields tuples of a frame and where in it, from the outermost one on."""

    def walk_script(tb: types.TracebackType | None) -> Iterator[Any]:
        if tb is None or context.current() is None or _module_of(tb.tb_frame).startswith(_HOST):
            return walk(tb)
        return (each for each in walk(tb) if not _is_ours(each[0]))

    return walk_script


def _of_stack(walk: Callable[..., Iterator[Any]]) -> Callable[..., Iterator[Any]]:
    """:param walk: yields tuples of a frame and a line, from the innermost one on; of None, from its caller's on."""

    def walk_script(f: types.FrameType | None) -> Iterator[Any]:
        if context.current() is None:
            return walk(f)
        if f is None:
            if sys.version_info < (3, 14):  # it counts frames then, and nothing of ours may be among them
                return walk(None)
            f = sys._getframe(1)
        return _above_host(walk(f))

    return walk_script


def _above_host(frames: Iterator[Any]) -> Iterator[Any]:
    first = next(frames)
    if _is_ours(first[0]):
        yield from chain((first,), frames)
        return
    yield first
    for each in frames:
        if _module_of(each[0]).startswith(_HOST):
            return
        if not _is_ours(each[0]):
            yield each


def install() -> None:
    """What the module `traceback` walks by."""
    if _KEPT:
        return
    module: Any = traceback
    for name in ("walk_tb", "_walk_tb_with_full_positions"):
        setattr(module, name, _of_traceback(getattr(module, name)))
    module.walk_stack = _of_stack(module.walk_stack)


def enter(job: context.JobContext) -> None:
    """Nothing: whose thread prints it is asked when it does."""


def leave(job: context.JobContext) -> None:
    """Nothing."""
