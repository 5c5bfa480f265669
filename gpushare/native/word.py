"""A word of memory for C functions that return something through a pointer."""

from __future__ import annotations

import ctypes


class Word:
    """A pointer-sized number that a C function may write."""

    def __init__(self) -> None:
        self._word = ctypes.c_uint64()

    @property
    def address(self) -> int:
        """Where it is, as long as this object lives."""
        return ctypes.addressof(self._word)

    @property
    def value(self) -> int:
        return self._word.value
