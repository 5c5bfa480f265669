"""Loads the compiled bridge (`shim/bridge/`) and makes it torch's CUDA allocator."""

from __future__ import annotations

import ctypes
from pathlib import Path

from gpushare.native.library import NativeError

_bridge: ctypes.CDLL | None = None


def install(path: Path) -> None:
    """Load the bridge, whose torch must be loaded already, and install it.

    :raises OSError: the file can't be loaded: damaged, or not for this torch.
    :raises NativeError: torch does not take it; the text says why.
    """
    global _bridge
    bridge = ctypes.CDLL(str(path))
    bridge.gpushare_bridge_install.restype = ctypes.c_char_p
    bridge.gpushare_bridge_total_memory.argtypes = [ctypes.c_int, ctypes.c_uint64]
    bridge.gpushare_bridge_total_memory.restype = None
    why: bytes | None = bridge.gpushare_bridge_install()
    if why:
        raise NativeError(why.decode(errors="replace"))
    _bridge = bridge


def clear_workspaces(account: int) -> bool:
    """Free cuBLAS's workspaces for the streams of the account. False: there is no bridge that knows them."""
    return _bridge is not None and bool(_bridge.gpushare_bridge_clear_workspaces(account))


def leave_dropout_state(account: int) -> None:
    """Free the account's state of cuDNN's dropout. Called by a thread of the account."""
    if _bridge is not None:
        _bridge.gpushare_bridge_leave_dropout_state(account)


def set_total_memory(device: int, total_bytes: int) -> None:
    """What torch's properties of the GPU say; without a bridge nothing changes. Torch must have initialised CUDA."""
    if _bridge is not None:
        _bridge.gpushare_bridge_total_memory(device, total_bytes)


def captures(account: int) -> int:
    """How many captures of the account the calling thread has under way, as far as torch has told."""
    return int(_bridge.gpushare_bridge_captures(account)) if _bridge is not None else 0


def abandon_captures(account: int, keep: int) -> None:
    """The last one has failed to begin or to end: it no longer keeps the account's memory from others.

    :param keep: how many of the calling thread's are still under way.
    """
    if _bridge is not None:
        _bridge.gpushare_bridge_abandon_captures(account, max(0, keep))
