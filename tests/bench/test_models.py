"""The models of scripts/bench/models, against cases worked out by hand and what must hold of any."""

import sys
from collections.abc import Callable, Iterable
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

sys.path.append(str(Path(__file__).parent.parent.parent / "scripts" / "bench"))
from models.caching import CachingAllocator
from models.ideal import live_peak, packed_offsets, packed_peak

KIB, MIB = 1 << 10, 1 << 20
SIZES = st.one_of(
    st.integers(1, 4 * KIB), st.integers(1, 2 * MIB), st.integers(1, 64 * MIB),
    st.sampled_from([512, MIB, MIB + 1, 2 * MIB, 10 * MIB - 512, 10 * MIB, 19 * MIB, 20 * MIB]),
)  # fmt: skip
STEPS = st.lists(st.tuples(SIZES, st.integers(0, 1), st.booleans(), st.integers(0)), max_size=80)
LIFETIMES = st.lists(
    st.tuples(st.integers(0, 40), st.integers(1, 20), st.integers(1, 5000)).map(
        lambda t: (t[0], t[0] + t[1], t[2])
    ),
    max_size=40,
)


def allocator(*sizes: int, expandable: bool = False) -> CachingAllocator:
    """With blocks 0, 1, ... of the sizes."""
    made = CachingAllocator(expandable_segments=expandable)
    for block, size in enumerate(sizes):
        made.allocate(block, size)
    return made


def disjoint(places: Iterable[tuple[int, int, int]]) -> bool:
    return all(a[0] < b[0] or a[1] + a[2] <= b[1] for a, b in pairwise(sorted(places)))


@pytest.mark.parametrize(
    ("sizes", "reserved"),
    [
        ([1], 2 * MIB),
        ([MIB] * 2, 2 * MIB),
        ([MIB] * 3, 4 * MIB),
        ([MIB + 1], 20 * MIB),
        ([5 * MIB], 20 * MIB),
        ([5 * MIB] * 4, 20 * MIB),
        ([5 * MIB] * 5, 40 * MIB),
        ([5 * MIB, MIB], 22 * MIB),
        ([10 * MIB - 512], 20 * MIB),
        ([10 * MIB - 511], 10 * MIB),
        ([11 * MIB + 512], 12 * MIB),
        ([12 * MIB], 12 * MIB),
        ([12 * MIB + 1], 14 * MIB),
    ],
)
def test_segments(sizes: list[int], reserved: int) -> None:
    assert allocator(*sizes).reserved == reserved


@pytest.mark.parametrize(
    ("sizes", "reserved"),
    [
        ([1], 2 * MIB),
        ([MIB] * 3, 4 * MIB),
        ([MIB - 512] * 3, 4 * MIB),  # the third lies across the handles
        ([12 * MIB], 20 * MIB),
        ([12 * MIB] * 3, 40 * MIB),
        ([12 * MIB, 25 * MIB], 40 * MIB),
        ([50 * MIB], 60 * MIB),
        ([50 * MIB, 10 * MIB], 60 * MIB),
        ([50 * MIB, 10 * MIB + 1], 80 * MIB),
        ([12 * MIB, 1], 22 * MIB),
    ],
)
def test_expandable_segments_grow_by_what_is_missing(sizes: list[int], reserved: int) -> None:
    assert allocator(*sizes, expandable=True).reserved == reserved


def test_sizes_are_rounded_to_512() -> None:
    made = allocator(1, 512, 513)
    assert made.allocated == 4 * 512
    assert sorted(made.live_blocks()) == [(0, 0, 512), (0, 512, 512), (0, 1024, 1024)]


@pytest.mark.parametrize(
    ("request_bytes", "block_bytes", "expandable"),
    [(19 * MIB, 20 * MIB, False), (19 * MIB - 512, 19 * MIB - 512, False), (19 * MIB, 19 * MIB, True)],
)
def test_a_large_rest_of_a_mib_is_split_off_only_if_expandable(
    request_bytes: int, block_bytes: int, expandable: bool
) -> None:
    made = allocator(20 * MIB, expandable=expandable)
    made.free(0)
    made.allocate(0, request_bytes)
    assert list(made.live_blocks()) == [(0, 0, block_bytes)]
    assert made.allocated == request_bytes and made.reserved == 20 * MIB


@pytest.mark.parametrize("expandable", [False, True])
def test_freed_neighbours_are_one_block(expandable: bool) -> None:
    made = allocator(*[5 * MIB] * 4, expandable=expandable)
    for block in (0, 2, 1):
        made.free(block)
    assert list(made.free_blocks()) == [(0, 0, 15 * MIB)]
    made.allocate(4, 15 * MIB)
    assert (made.reserved, made.reserved_peak, made.allocated) == (20 * MIB, 20 * MIB, 20 * MIB)


def test_segments_stay_apart() -> None:
    made = allocator(10 * MIB, 10 * MIB)
    made.free(0)
    made.free(1)
    made.allocate(2, 20 * MIB)
    assert made.reserved == made.reserved_peak == 40 * MIB and made.allocated == 20 * MIB


@pytest.mark.parametrize(("expandable", "reserved"), [(False, 20 * MIB), (True, 40 * MIB)])
def test_streams_share_nothing(expandable: bool, reserved: int) -> None:
    made = allocator(10 * MIB, expandable=expandable)
    made.free(0)
    made.allocate(1, 10 * MIB, stream=1)
    assert made.reserved == reserved
    made.free(1)
    made.allocate(2, 10 * MIB, stream=0)
    assert made.reserved == reserved


def test_best_fit() -> None:
    made = allocator(16 * MIB, 12 * MIB, 14 * MIB)
    for block in range(3):
        made.free(block)
    made.allocate(3, 11 * MIB)
    assert list(made.live_blocks()) == [(1, 0, 12 * MIB)]


def test_what_can_expand_is_taken_last() -> None:
    made = allocator(8 * MIB, 2 * MIB, 4 * MIB, expandable=True)
    made.free(0)  # 8 MiB here, 6 at the end
    made.allocate(3, 5 * MIB)
    assert (0, 0, 5 * MIB) in made.live_blocks()
    made.allocate(4, 4 * MIB)
    assert (0, 14 * MIB, 4 * MIB) in made.live_blocks()


def test_the_free_end_is_extended() -> None:
    made = allocator(12 * MIB, expandable=True)
    made.allocate(1, 15 * MIB)
    assert sorted(made.live_blocks()) == [(0, 0, 12 * MIB), (0, 12 * MIB, 15 * MIB)]
    made.free(0)
    made.allocate(2, 14 * MIB)  # 12 at the begin, 13 at the end
    assert (0, 27 * MIB, 14 * MIB) in made.live_blocks() and made.reserved == 60 * MIB


def test_wrong_requests_are_refused() -> None:
    made = allocator(1)
    with pytest.raises(ValueError, match="but got block 0, size 1"):
        made.allocate(0, 1)
    with pytest.raises(ValueError, match="but got block 1, size 0"):
        made.allocate(1, 0)


def run(
    made: CachingAllocator, steps: list[tuple[int, int, bool, int]], check: Callable[[], None]
) -> list[int]:
    """Allocate at each step, and free one of the live blocks where that is asked for; what lives in the end."""
    live: list[int] = []
    for block, (size, stream, frees, which) in enumerate(steps):
        made.allocate(block, size, stream)
        live.append(block)
        if frees:
            made.free(live.pop(which % len(live)))
        check()
    return live


@given(steps=STEPS, expandable=st.booleans())
def test_blocks_tile_the_segments(steps: list[tuple[int, int, bool, int]], expandable: bool) -> None:
    made = CachingAllocator(expandable_segments=expandable)

    def check() -> None:
        live, free = list(made.live_blocks()), list(made.free_blocks())
        assert disjoint(live + free)
        held = sum(size for _, _, size in live)
        assert made.allocated <= held <= made.reserved <= made.reserved_peak
        assert held + sum(size for _, _, size in free) == made.reserved

    left = run(made, steps, check)
    for block in left:
        made.free(block)
    check()
    free = list(made.free_blocks())
    assert made.allocated == 0 and all(offset == 0 for _, offset, _ in free)
    assert len({segment for segment, _, _ in free}) == len(free)


@given(STEPS)
def test_what_has_expanded_serves_the_same_again(steps: list[tuple[int, int, bool, int]]) -> None:
    made = CachingAllocator(expandable_segments=True)
    places = []
    for _ in range(2):
        left = run(made, steps, lambda: None)
        places.append((made.reserved, list(made.live_blocks())))
        for block in left:
            made.free(block)
    assert places[0] == places[1]


@given(LIFETIMES)
def test_what_lives_at_once_is_packed_apart(lifetimes: list[tuple[int, int, int]]) -> None:
    placed = list(zip(packed_offsets(lifetimes), lifetimes, strict=True))
    for now in range(60):
        assert disjoint((0, at, size) for at, (begin, end, size) in placed if begin <= now < end)
    assert live_peak(lifetimes) <= packed_peak(lifetimes) <= sum(512 * -(-s // 512) for _, _, s in lifetimes)


@given(LIFETIMES)
def test_equal_sizes_are_packed_without_loss(lifetimes: list[tuple[int, int, int]]) -> None:
    equal = [(begin, end, 1024) for begin, end, _ in lifetimes]
    assert packed_peak(equal) == live_peak(equal)


@given(order=st.permutations(range(12)), size=st.integers(1, 9).map(lambda n: n * 512))
def test_a_stack_is_packed_without_loss(order: list[int], size: int) -> None:
    nested = [(level, 24 - level, size) for level in order]
    assert packed_peak(nested) == live_peak(nested) == 12 * size


@pytest.mark.parametrize(
    ("lifetimes", "live", "packed"),
    [
        ([], 0, 0),
        ([(0, 1, 100)], 100, 512),
        ([(0, 1, 1024), (1, 2, 1024)], 1024, 1024),  # the first has ended when the second begins
        ([(0, 1, 512), (1, 2, 1024)], 1024, 1024),
        ([(0, 2, 512), (1, 3, 1024), (2, 4, 1536)], 2560, 2560),
        ([(0, 2, 1024), (1, 3, 512), (2, 4, 1024)], 1536, 1536),
        ([(0, 2, 512), (1, 4, 1024), (3, 5, 512), (0, 1, 1024)], 1536, 1536),
        # The second lies above the first, and the third neither fits below it nor below the last.
        ([(0, 2, 1536), (1, 4, 1024), (3, 6, 1024), (5, 7, 1536)], 2560, 3584),
    ],
)
def test_packing_by_hand(lifetimes: list[tuple[int, int, int]], live: int, packed: int) -> None:
    assert (live_peak(lifetimes), packed_peak(lifetimes)) == (live, packed)
