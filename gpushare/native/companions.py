"""What runs beside a job that is profiled (`shim/src/api_companions.cpp`)."""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import os
from dataclasses import dataclass

from gpushare.native.library import NativeError, last_error, lib

_EVERY_NS = 500_000
_MOST_NS = 10 * 10**9  # if nobody tells a companion to stop
_BUFFER_BYTES, _FREE_SHARE = 256 << 20, 1 / 16  # more than caches hold; of what is free


class Stop:
    """Tells companions to end; any thread may."""

    def __init__(self) -> None:
        self._flag = ctypes.c_int32(0)

    def set(self) -> None:
        """Now."""
        self._flag.value = 1

    @property
    def pointer(self) -> ctypes._Pointer[ctypes.c_int32]:
        """As the shim takes it."""
        return ctypes.pointer(self._flag)


@dataclass(frozen=True)
class Looks:
    """How often it was looked whether any thread holds the GIL, and how often one did."""

    looks: int
    held: int


class Buffer:
    """Memory to copy to and fro in, with all its pages: a fault takes longer than a copy."""

    def __init__(self) -> None:
        free_bytes = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        self._bytes = max(1 << 20, min(_BUFFER_BYTES, int(free_bytes * _FREE_SHARE)))
        self._memory = mmap.mmap(-1, self._bytes)
        with contextlib.suppress(OSError):  # a kernel without them
            self._memory.madvise(mmap.MADV_HUGEPAGE)
        self._address = ctypes.addressof(ctypes.c_char.from_buffer(self._memory))
        ctypes.memset(self._address, 1, self._bytes)

    def copy_until(self, stop: Stop) -> float:
        """Bytes copied per second until told to stop."""
        out = (ctypes.c_uint64 * 2)()
        lib().gs_traffic(self._address, self._bytes, stop.pointer, _MOST_NS, out)
        return out[0] / max(1, out[1]) * 1e9


def watch_gil(stop: Stop) -> Looks:
    """Look every half a millisecond until told to stop."""
    out = (ctypes.c_uint64 * 2)()
    if lib().gs_gil_watch(_EVERY_NS, stop.pointer, _MOST_NS, out) != 0:
        raise NativeError(last_error())
    return Looks(*out)
