"""torch.cuda with an allocator that writes down each call, native/allocator.cpp."""

import ctypes
from ctypes import c_int64, c_size_t, c_uint64, c_void_p
from typing import Any

from . import libraries
from .checks import CannotCheck
from .later import torch

ALLOC, FREE, RECORD_STREAM, EMPTY_CACHE = range(4)
SERVE, GIVE_NULL, THROW_BAD_ALLOC, THROW_OUT_OF_MEMORY = range(4)


class Record(ctypes.Structure):
    """One call. `gil` is 1 if its thread held the interpreter's lock, -1 if that can't be told."""

    _fields_ = (
        ("what", c_int64),
        ("bytes", c_int64),
        ("device", c_int64),
        ("thread", c_int64),
        ("gil", c_int64),
        ("address", c_uint64),
        ("stream", c_uint64),
    )


class Recording:
    """The library, not yet torch's allocator: install() or the bridge makes it so."""

    def __init__(self, library: str = "allocator") -> None:
        self._library = libraries.load(library)
        self._library.record_count.restype = c_int64
        self._library.record_at.restype = ctypes.POINTER(Record)
        self._library.record_at.argtypes = [c_int64]
        self._library.make_arena.argtypes = [c_size_t]
        self._path = libraries.path(library)
        self._stock: Any = None

    def install(self) -> "Recording":
        """Make it torch's allocator, as the stock pluggable one; before CUDA is initialised."""
        self._stock = torch.cuda.memory.CUDAPluggableAllocator(self._path, "counted_alloc", "counted_free")
        torch.cuda.memory.change_current_allocator(self._stock)
        return self

    def set_hooks(self) -> None:
        """Let record_stream and empty_cache arrive as well."""
        handle = self._stock.allocator()
        if not hasattr(handle, "set_record_stream_fn") or not hasattr(handle, "set_reset_fn"):
            raise CannotCheck("this torch's pluggable allocator has no set_record_stream_fn or set_reset_fn")
        handle.set_record_stream_fn(self.function("counted_record_stream"))
        handle.set_reset_fn(self.function("counted_empty_cache"))

    def function(self, name: str) -> int:
        """The address of a function of the library."""
        return ctypes.cast(getattr(self._library, name), c_void_p).value or 0

    def set_mode(self, mode: int) -> None:
        self._library.set_mode(mode)

    def make_arena(self, size: int) -> None:
        """Serve from one block from now on, which is never given back."""
        error = self._library.make_arena(size)
        if error:
            raise CannotCheck(f"no arena of {size} bytes: the driver's error {error}")

    def forget(self) -> None:
        self._library.forget_records()

    def seen(self, what: int) -> list[Record]:
        """The calls of one kind since the last forget()."""
        every = (self._library.record_at(i).contents for i in range(self._library.record_count()))
        return [record for record in every if record.what == what]
