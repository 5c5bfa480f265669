"""Cutting a curve into pieces (Waterwave's node groups, section 4.3)."""

from __future__ import annotations

from collections.abc import Sequence


def segments(held_bytes: Sequence[int], split_bytes: int) -> list[tuple[int, int]]:
    """Pieces [first, end) of the curve, each ending where `split_bytes` were allocated or freed in it."""
    pieces, first, moved = [], 0, 0
    for i in range(1, len(held_bytes)):
        moved += abs(held_bytes[i] - held_bytes[i - 1])
        if moved >= split_bytes:
            pieces.append((first, i))
            first, moved = i, 0
    if first < len(held_bytes):
        pieces.append((first, len(held_bytes)))
    return pieces
