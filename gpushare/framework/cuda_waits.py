"""Waits of our own, which a script that forbids its own does not mean (`torch.cuda.set_sync_debug_mode`)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch


@contextmanager
def allowed() -> Iterator[None]:
    """The calling thread may wait for a stream, whatever a script has set for the process."""
    names: Any = torch._C
    mode = names._cuda_get_sync_debug_mode()
    if mode == 0:  # to set it warns, once in a process
        yield
        return
    names._cuda_set_sync_debug_mode(0)
    try:
        yield
    finally:
        names._cuda_set_sync_debug_mode(mode)
