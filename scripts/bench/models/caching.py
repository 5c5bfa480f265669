"""A model of PyTorch's CUDA caching allocator: the bytes it takes from the device for given allocations and frees.

After c10/cuda/CUDACachingAllocator.cpp, whose functions are named below, with the sizes of torch 2.13's
c10/core/AllocatorConfig.h: default settings, and a device without end, so that no cached memory is given back.
Without graphs and record_stream: what is freed is free at once.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator
from dataclasses import dataclass

_MIB = 1 << 20
_MIN_BLOCK = 512  # kMinBlockSize
_SMALL_SIZE = 1 * _MIB  # kSmallSize
_SMALL_BUFFER = 2 * _MIB  # kSmallBuffer
_LARGE_BUFFER = 20 * _MIB  # large_segment_size; kLargeBuffer in older versions
_MIN_LARGE = 10 * _MIB  # kMinLargeAlloc
_ROUND_LARGE = 2 * _MIB  # kRoundLarge
_SPACING = 1 << 48  # addresses between the begins of two segments


class CachingAllocator:
    """One device; sizes in bytes. `reserved` and `reserved_peak` are as in torch.cuda.memory_reserved().

    `allocated` sums the requests of live blocks, rounded up to 512 bytes. torch.cuda.memory_allocated() also counts
    what a block has beyond its request because it was not split.
    """

    def __init__(self, *, expandable_segments: bool = False) -> None:
        self.reserved = self.reserved_peak = self.allocated = 0
        self._expandable = expandable_segments
        self._segments = 0
        self._pools: dict[tuple[int, bool], _Pool] = {}
        self._live: dict[int, tuple[_Block, int]] = {}

    def allocate(self, block: int, size: int, stream: int = 0) -> None:
        """The best fit of the cache, or new memory, cut to size (malloc, round_size, get_pool)."""
        if size <= 0 or block in self._live:
            raise ValueError(f"block must be new and size positive, but got block {block}, size {size}")
        rounded = _round_up(size, _MIN_BLOCK)
        pool = self._pool(stream, small=rounded <= _SMALL_SIZE)
        found = pool.best_fit(rounded) or self._grow(pool, rounded)
        pool.take(found, rounded)
        self._live[block] = found, rounded
        self.allocated += rounded

    def free(self, block: int) -> None:
        """Put a live block into the cache of the stream that it was allocated on."""
        freed, rounded = self._live.pop(block)
        freed.pool.give(freed)
        self.allocated -= rounded

    def live_blocks(self) -> Iterator[tuple[int, int, int]]:
        """(segment, offset, bytes) of each; the bytes are those of the block, not those asked for."""
        return (block.place for block, _ in self._live.values())

    def free_blocks(self) -> Iterator[tuple[int, int, int]]:
        """(segment, offset, bytes) of what is cached."""
        return (block.place for pool in self._pools.values() for block in pool)

    def _pool(self, stream: int, *, small: bool) -> _Pool:
        if (stream, small) not in self._pools:
            self._pools[stream, small] = _Pool(small=small, expandable=self._expandable)
        return self._pools[stream, small]

    def _grow(self, pool: _Pool, size: int) -> _Block:
        """A cached block of at least `size` in new memory (alloc_block)."""
        if self._expandable:
            return self._expand(pool, size)
        block = _Block(pool, self._new_segment(), _segment_bytes(size))
        self._reserve(block.size)
        return pool.give(block)

    def _expand(self, pool: _Pool, size: int) -> _Block:
        """Map whole handles for what the free block at the end lacks, if there is one (try_allocate_expandable_block).

        find_expandable_block looks for unmapped addresses from the lowest; as nothing is ever unmapped again, they
        are at the end. An address range that is used up, at 9/8 of the device's memory, is not modelled.
        """
        if pool.unmapped is None:
            pool.unmapped = _Block(pool, self._new_segment(), 0)
        last = pool.unmapped.prev
        lacking = size - last.size if last and last.free else size
        mapped = _round_up(lacking, _SMALL_BUFFER if pool.small else _LARGE_BUFFER)
        self._reserve(mapped)
        return pool.map(pool.unmapped, mapped)

    def _new_segment(self) -> int:
        self._segments += 1
        return (self._segments - 1) * _SPACING

    def _reserve(self, size: int) -> None:
        self.reserved += size
        self.reserved_peak = max(self.reserved_peak, self.reserved)


@dataclass(eq=False, slots=True)
class _Block:
    """A part of a segment, between its neighbours there."""

    pool: _Pool
    address: int
    size: int
    free: bool = False
    prev: _Block | None = None
    next: _Block | None = None

    @property
    def place(self) -> tuple[int, int, int]:
        """Segment, offset and bytes."""
        return (*divmod(self.address, _SPACING), self.size)


class _Pool:
    """The cached blocks of one stream, small or large, by size and then address (BlockComparatorSize).

    Of blocks of one size the first is that of the oldest segment; cudaMalloc need not hand out rising addresses.
    `unmapped` is the rest of the address range if segments are expandable and there is one; its size is no matter.
    """

    def __init__(self, *, small: bool, expandable: bool) -> None:
        self.small = small
        self.unmapped: _Block | None = None
        self._least_rest = _MIN_BLOCK if small or expandable else _SMALL_SIZE + 1
        self._order: list[tuple[int, int]] = []
        self._blocks: dict[int, _Block] = {}

    def __iter__(self) -> Iterator[_Block]:
        return iter(self._blocks.values())

    def best_fit(self, size: int) -> _Block | None:
        """The smallest that is large enough (get_free_block).

        The block before unmapped addresses counts with all of them, and so comes after any other.
        """
        at = bisect_left(self._order, (size, 0))
        fits = [self._blocks[address] for _, address in self._order[at : at + 2]]
        if len(fits) == 2 and fits[0].next and fits[0].next is self.unmapped:
            return fits[1]
        return fits[0] if fits else None

    def take(self, block: _Block, size: int) -> None:
        """Make a cached block live, without its rest if that is large enough (should_split, alloc_found_block)."""
        self._remove(block)
        if block.size - size < self._least_rest:
            return
        rest = _Block(self, block.address + size, block.size - size)
        block.size = size
        _link(rest, block.next)
        _link(block, rest)
        self._insert(rest)

    def give(self, block: _Block) -> _Block:
        """Cache a block as one with its free neighbours (free_block, try_merge_blocks)."""
        before, after = block.prev, block.next
        if before and before.free:
            self._remove(before)
            block.address = before.address
            block.size += before.size
            block.prev = None
            _link(before.prev, block)
        if after and after.free:
            self._remove(after)
            block.size += after.size
            block.next = None
            _link(block, after.next)
        self._insert(block)
        return block

    def map(self, unmapped: _Block, size: int) -> _Block:
        """Cache the first bytes of the unmapped addresses (map_block)."""
        block = _Block(self, unmapped.address, size)
        unmapped.address += size
        _link(unmapped.prev, block)
        _link(block, unmapped)
        return self.give(block)

    def _insert(self, block: _Block) -> None:
        block.free = True
        insort(self._order, (block.size, block.address))
        self._blocks[block.address] = block

    def _remove(self, block: _Block) -> None:
        block.free = False
        del self._order[bisect_left(self._order, (block.size, block.address))]
        del self._blocks[block.address]


def _link(before: _Block | None, after: _Block | None) -> None:
    if before:
        before.next = after
    if after:
        after.prev = before


def _round_up(size: int, multiple: int) -> int:
    return -(-size // multiple) * multiple


def _segment_bytes(size: int) -> int:
    """What is asked of the device for a rounded request (get_allocation_size)."""
    if size <= _SMALL_SIZE:
        return _SMALL_BUFFER
    return _LARGE_BUFFER if size < _MIN_LARGE else _round_up(size, _ROUND_LARGE)
