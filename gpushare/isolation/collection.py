"""Garbage collection: finalizers of any job run in the thread that collects, which must not wait for memory."""

from __future__ import annotations

import gc

from gpushare import native
from gpushare.isolation import context


def install() -> None:
    """Have each collection be a section without waits."""
    gc.callbacks.append(native.collection_callback())


def enter(job: context.JobContext) -> None:
    """Nothing: the collector is the process's."""


def leave(job: context.JobContext) -> None:
    """Free what the job's cycles hold."""
    gc.collect()
