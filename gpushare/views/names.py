"""Names of jobs where there is little room for them."""

from __future__ import annotations

from rich.cells import cell_len, set_cell_size


def shortened(name: str, width: int) -> str:
    """At most `width` columns of it, without its middle: of one script's jobs it is the ends that differ."""
    if cell_len(name) <= width:
        return name
    head = (width - 1) // 3
    tail = width - 1 - head
    return f"{set_cell_size(name, head)}…{_end(name, tail)}" if tail > 0 else "…"[:width]


def _end(name: str, width: int) -> str:
    """The last columns of it."""
    start = len(name)
    while start and cell_len(name[start - 1 :]) <= width:
        start -= 1
    return name[start:]
