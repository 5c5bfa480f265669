"""What an allocator could reach that knows all lifetimes before: blocks packed offline, and never moved.

Lifetimes are (begin, end, bytes) in whole units of time; a block lives from its begin until just before its end.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

Lifetime = tuple[int, int, int]
_ALIGNMENT = 512
_EVERYWHERE = np.iinfo(np.int64).max


def live_peak(lifetimes: Sequence[Lifetime]) -> int:
    """Most bytes that live at once, not rounded: no packing needs less."""
    ends = [(end, -size) for _, end, size in lifetimes]
    begins = [(begin, size) for begin, _, size in lifetimes]
    # At one time the ends, which are negative, come first.
    return max(accumulate(change for _, change in sorted(ends + begins)), default=0)


def packed_peak(lifetimes: Sequence[Lifetime]) -> int:
    """Highest address that `packed_offsets` uses: an upper bound of the best packing, which is NP-hard to find."""
    offsets = packed_offsets(lifetimes)
    return max((at + _rounded(size) for at, (_, _, size) in zip(offsets, lifetimes, strict=True)), default=0)


def packed_offsets(lifetimes: Sequence[Lifetime]) -> list[int]:
    """An address for each block, by size as in Pisarchyk and Lee, arXiv:2001.03288: largest first, then earliest.

    Each goes to the lowest address that is free for its whole life (the paper takes the smallest gap). Sizes are
    rounded up to 512 bytes. Takes time with the square of the number of blocks.
    """
    offsets = [0] * len(lifetimes)
    placed = _Placed(len(lifetimes))
    for index in sorted(range(len(lifetimes)), key=lambda i: (-_rounded(lifetimes[i][2]), lifetimes[i][0])):
        begin, end, size = lifetimes[index]
        offsets[index] = placed.place(begin, end, _rounded(size))
    return offsets


class _Placed:
    """The blocks placed so far, in columns by rising offset; rows are begin, end, offset and top."""

    def __init__(self, capacity: int) -> None:
        self._columns = np.empty((4, capacity), np.int64)
        self._count = 0

    def place(self, begin: int, end: int, size: int) -> int:
        """The lowest offset where no block overlaps, which the new one then takes."""
        begins, ends, bottoms, tops = self._columns[:, : self._count]
        alive = np.flatnonzero((begins < end) & (ends > begin))
        offset = _lowest_gap(bottoms[alive], tops[alive], size)
        at = int(np.searchsorted(bottoms, offset))
        self._columns[:, at + 1 : self._count + 1] = self._columns[:, at : self._count]
        self._columns[:, at] = begin, end, offset, offset + size
        self._count += 1
        return offset


def _lowest_gap(bottoms: NDArray[np.int64], tops: NDArray[np.int64], size: int) -> int:
    """Lowest offset of `size` free bytes among blocks by rising `bottoms`, which may overlap."""
    floors = np.concatenate(([0], np.maximum.accumulate(tops)))
    ceilings = np.append(bottoms, _EVERYWHERE)
    return int(floors[np.argmax(ceilings - floors >= size)])


def _rounded(size: int) -> int:
    return -(-size // _ALIGNMENT) * _ALIGNMENT
