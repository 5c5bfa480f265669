"""Loads the compiled bridge (`shim/bridge/`) and makes it torch's CUDA allocator."""

from __future__ import annotations

import ctypes
from pathlib import Path

from gpushare.native.library import NativeError


def install(path: Path) -> None:
    """Load the bridge, whose torch must be loaded already, and install it.

    :raises OSError: the file can't be loaded: damaged, or not for this torch.
    :raises NativeError: torch does not take it; the text says why.
    """
    bridge = ctypes.CDLL(str(path))
    bridge.gpushare_bridge_install.restype = ctypes.c_char_p
    why: bytes | None = bridge.gpushare_bridge_install()
    if why:
        raise NativeError(why.decode(errors="replace"))
