"""What a host would have told of two jobs, and how a view of it looks."""

import io
import os
import struct

from rich.console import Console

from gpushare.telemetry import layout

MIB = 1 << 20


def empty() -> int:
    """The telemetry's memory, by its descriptor."""
    descriptor = os.memfd_create("telemetry")
    os.ftruncate(descriptor, layout.TOTAL_BYTES)
    return descriptor


def put(descriptor: int, offset: int, names: list[str], **values: int) -> None:
    for name, value in values.items():
        os.pwrite(descriptor, struct.pack("<Q", value), offset + 8 * names.index(name))


def fill(descriptor: int) -> None:
    put(descriptor, 0, layout.HEADER, held_bytes=300 * MIB, held_peak_bytes=310 * MIB)
    put(descriptor, 0, layout.HEADER, overlap_ns=2_000_000_000)
    for account, iterations in ((1, 40), (2, 38)):
        slot = layout.HEADER_BYTES + account * layout.SLOT_BYTES
        put(descriptor, slot, layout.SLOT, state=3, held_bytes=150 * MIB, iterations=iterations)
        put(descriptor, slot, layout.SLOT, solo_peak_bytes=200 * MIB, begin_ns=1, end_ns=5_000_000_001)
        put(descriptor, slot, layout.SLOT, solo_iteration_ns=100_000_000, shared_iterations=iterations)
        put(descriptor, slot, layout.SLOT, shared_work=iterations * 1_000_000)
        put(descriptor, slot, layout.SLOT, shared_iteration_sum_ns=iterations * 110_000_000)
        put(descriptor, slot, layout.SLOT, door_wait_ns=1_000_000_000)


def text_of(renderable: object, width: int = 80) -> str:
    console = Console(width=width, record=True, file=io.StringIO())
    console.print(renderable)
    return console.export_text()
