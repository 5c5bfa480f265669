"""CUDA's driver interface, through native/driver.cpp."""

import ctypes
from ctypes import byref, c_double, c_int, c_size_t, c_uint, c_uint64, c_void_p
from typing import Any

from . import libraries
from .checks import CannotCheck

SIGNATURES: dict[str, list[Any]] = {
    "granularity": [c_void_p, c_int],
    "reserve": [c_void_p, c_size_t],
    "unreserve": [c_uint64, c_size_t],
    "chunk_create": [c_void_p, c_size_t],
    "chunk_map": [c_uint64, c_size_t, c_size_t, c_uint64],
    "chunk_allow": [c_uint64, c_size_t],
    "chunk_unmap": [c_uint64, c_size_t],
    "chunk_release": [c_uint64],
    "stream_create": [c_void_p, c_uint],
    "device_alloc": [c_void_p, c_size_t],
    "device_free": [c_uint64],
    "chunk_costs": [c_size_t, c_int, c_void_p],
    "event_costs": [c_void_p, c_void_p, c_int, c_void_p],
    "malloc_costs": [c_size_t, c_int, c_void_p],
}
CHUNK_STEPS = (
    "reserve",
    "create",
    "map",
    "access",
    "unmap",
    "map_again",
    "access_range",
    "unmap_range",
    "release",
    "unreserve",
)


class DriverError(Exception):
    """A call that the driver refused; the text has the driver's name of the error."""


class Driver:
    """Made once CUDA is initialised; addresses and handles are plain numbers."""

    def __init__(self) -> None:
        self._library = libraries.load("driver")
        self._library.open_driver.restype = ctypes.c_char_p
        self._library.error_name.restype = ctypes.c_char_p
        for name, arguments in SIGNATURES.items():
            getattr(self._library, name).argtypes = arguments
        why = self._library.open_driver()
        if why:
            raise CannotCheck(why.decode())

    def call(self, name: str, *arguments: Any) -> None:
        error = getattr(self._library, name)(*arguments)
        if error:
            raise DriverError(f"{name}: {self._library.error_name(error).decode()}")

    def granularity(self, recommended: bool = False) -> int:
        size = c_size_t()
        self.call("granularity", byref(size), recommended)
        return size.value

    def reserve(self, size: int) -> int:
        return self._made("reserve", size)

    def chunk(self, size: int) -> int:
        """A handle of physical memory."""
        return self._made("chunk_create", size)

    def mapped(self, size: int, handle: int) -> int:
        """A fresh address at which a whole handle lies, to be read and written."""
        at = self.reserve(size)
        self.call("chunk_map", at, size, 0, handle)
        self.call("chunk_allow", at, size)
        return at

    def stream(self, blocking: bool) -> int:
        """A stream; a blocking one keeps the order of the legacy default stream."""
        made = c_void_p()
        self.call("stream_create", byref(made), 0 if blocking else 1)
        return made.value or 0

    def alloc(self, size: int) -> int:
        return self._made("device_alloc", size)

    def chunk_costs(self, size: int, count: int) -> dict[str, float]:
        """Mean microseconds per step of CHUNK_STEPS; those of a range are for all chunks together.

        A range that the driver does not unmap in one call is unmapped chunk by chunk.
        """
        return self._costs("chunk_costs", CHUNK_STEPS, size, count)

    def event_costs(self, stream: int, other: int, count: int) -> dict[str, float]:
        """Mean microseconds per call, for events without timing."""
        steps = ("create", "record", "wait", "query", "destroy")
        return self._costs("event_costs", steps, stream, other, count)

    def malloc_costs(self, size: int, count: int) -> dict[str, float]:
        """Mean microseconds per cuMemAlloc and cuMemFree."""
        return self._costs("malloc_costs", ("alloc", "free"), size, count)

    def _made(self, name: str, size: int) -> int:
        made = c_uint64()
        self.call(name, byref(made), size)
        return made.value

    def _costs(self, name: str, steps: tuple[str, ...], *arguments: int) -> dict[str, float]:
        means = (c_double * len(steps))()
        try:
            self.call(name, *arguments, means)
        except DriverError as error:
            done = [step for step, mean in zip(steps, means, strict=True) if mean]
            raise DriverError(f"{error}, after {', '.join(done) or 'nothing'}") from None
        return dict(zip(steps, means, strict=True))
