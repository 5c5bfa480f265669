"""Permits as the shim takes them."""

from __future__ import annotations

import ctypes

NEVER = 2**64 - 1  # as `made`: not while that iteration runs


class NativePermit(ctypes.Structure):
    """`job` may start beside an iteration of `after` once that has `made` so many allocations (`gs_permit`)."""

    _fields_ = [
        ("job", ctypes.c_int32),
        ("after", ctypes.c_int32),
        ("made", ctypes.c_uint64),
        ("shift_ns", ctypes.c_uint64),
        ("by_forecast", ctypes.c_uint32),
    ]
