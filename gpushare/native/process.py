"""System calls about processes and threads that Python's library lacks."""

from __future__ import annotations

import ctypes
import os

_PR_SET_CHILD_SUBREAPER = 36
_CLONE_FS = 0x200

_libc = ctypes.CDLL(None, use_errno=True)


def set_child_subreaper() -> None:
    """Adopt orphaned descendants, so that they can be found and ended (prctl(2), Linux)."""
    _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def unshare_fs() -> None:
    """Give the calling thread a working directory of its own; threads it starts share it."""
    if _libc.unshare(_CLONE_FS) != 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
