"""Garbage collection: finalizers of any job run in the thread that collects, which must not wait for memory.

There is one collector. It rests only while every job wants it to.
"""

from __future__ import annotations

import gc
import os

from gpushare.isolation import context, global_names, switch
from gpushare.isolation.perjob import PerJob
from gpushare.native import shim

_wanted: PerJob[bool] = PerJob(True, lambda: True)
_enable, _disable, _freeze = gc.enable, gc.disable, gc.freeze


def _apply() -> None:
    job = context.current()
    jobs = switch.live if context.in_host() else [job] if job else []
    (_enable if not jobs or any(map(_wanted.of, jobs)) else _disable)()


def enable() -> None:
    """As `gc.enable`, for the calling job."""
    _wanted.set(True)
    _apply()


def disable() -> None:
    """As `gc.disable`, for the calling job."""
    _wanted.set(False)
    _apply()


def isenabled() -> bool:
    """As `gc.isenabled`, for the calling job."""
    return _wanted.get()


def freeze() -> None:
    """As `gc.freeze`, while no other job is there whose cycles would never be collected again."""
    if len(switch.live) < 2 or not context.in_host():
        _freeze()


def freeze_host() -> None:
    """What is there before any job the collector looks at no more: it goes with the host, and each look takes all jobs'
    time, which have one interpreter."""
    global_names.note_frozen()
    _freeze()


def install() -> None:
    """Have each collection be a section without waits, and answer for the functions."""
    gc.callbacks.append(shim.collection_callback())
    gc.enable, gc.disable, gc.freeze, gc.isenabled = enable, disable, freeze, isenabled
    os.register_at_fork(after_in_child=_apply)


def enter(job: context.JobContext) -> None:
    """The collector runs for the newcomer."""
    _apply()


def leave(job: context.JobContext) -> None:
    """Let the others' wishes count."""
    _apply()
