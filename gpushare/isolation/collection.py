"""Garbage collection: finalizers of any job run in the thread that collects, which must not wait for memory."""

from __future__ import annotations

import gc

from gpushare.isolation import context
from gpushare.native import shim


def install() -> None:
    """Have each collection be a section without waits."""
    gc.callbacks.append(shim.collection_callback())


def enter(job: context.JobContext) -> None:
    """Nothing: the collector is the process's."""


def leave(job: context.JobContext) -> None:
    """Free what the job's cycles hold."""
    gc.collect()
