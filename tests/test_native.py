"""Pool and heap through the C API, against a model that knows only addresses and sizes."""

import ctypes
from bisect import bisect_left

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from gpushare.native import doors, library, shim, usage
from gpushare.telemetry import layout

KIB, MIB = 1 << 10, 1 << 20
BUDGET, PAGE, SLAB = 32 * MIB, 64 * KIB, 512 * KIB


@pytest.fixture(scope="module", autouse=True)
def started() -> None:
    library.load()
    shim.start(
        budget_bytes=BUDGET,
        page_bytes=PAGE,
        region_bytes=4 * MIB,
        policy="unmanaged",
        telemetry_fd=-1,
        parent_pid=0,
        debug_memory=True,
    )
    assert [shim.job_begin(0) for _ in range(2)] == [1, 2]


def test_a_second_start_is_refused() -> None:
    with pytest.raises(library.NativeError, match="already started"):
        shim.start(
            budget_bytes=BUDGET,
            page_bytes=PAGE,
            region_bytes=MIB,
            policy="zico",
            telemetry_fd=-1,
            parent_pid=0,
        )


def test_the_telemetry_is_as_long_as_its_layout() -> None:
    assert shim.telemetry_bytes() == layout.TOTAL_BYTES


def test_an_address_that_is_not_the_pools() -> None:
    assert shim.owner(ctypes.addressof(ctypes.c_int())) == -1


def test_out_of_memory_tells_the_figures() -> None:
    with pytest.raises(library.NativeError, match=r"asked for 33\.0 MiB .* the budget is 32\.0 MiB"):
        shim.allocate(33 * MIB, 1)
    assert shim.pool_state().held_bytes == 0


def test_freeing_twice_or_in_the_middle_changes_nothing() -> None:
    first, second = shim.allocate(1000, 1), shim.allocate(100 * KIB, 1)
    for wrong in (first + 1, second + 64):
        shim.free(wrong)
    assert shim.owner(first) == shim.owner(second) == 1
    for address in (first, first, second, second):
        shim.free(address)
    shim.check()
    shim.trim(1)
    assert shim.pool_state().held_bytes == 0
    while usage.next_bad_free():
        pass


def test_bad_frees_are_told() -> None:
    shim.thread_enter(2, 0)
    try:
        small, middle, large = (shim.allocate(count, 1) for count in (1000, 100 * KIB, 5 * MIB))
        kept = shim.allocate(100 * KIB, 1)
        assert usage.next_bad_free() is None
        for address in (small, middle, large):
            shim.free(address)
            shim.free(address)
        for address in (kept + 4 * KIB, kept + MIB):
            shim.free(address)
    finally:
        shim.free(kept)
        shim.thread_leave()
    told = [usage.next_bad_free() for _ in range(5)]
    assert all(found and found.freer == 2 for found in told)
    for found, address, count in zip(
        told[:3], (small, middle, large), (1024, 100 * KIB, 5 * MIB), strict=True
    ):
        assert found and (found.kind, found.address, found.bytes) == (usage.FREED_TWICE, address, count)
        assert (found.owner, found.freed_by) == (1, 2)
    inside, nothing = told[3:]
    assert inside and (inside.kind, inside.bytes, inside.offset) == (usage.FREED_INSIDE, 100 * KIB, 4 * KIB)
    assert inside.owner == 1
    assert nothing and (nothing.kind, nothing.bytes) == (3, 0)
    assert usage.next_bad_free() is None
    shim.trim(1)
    assert shim.pool_state().held_bytes == 0


def test_freed_memory_is_overwritten() -> None:
    first, second = shim.allocate(100 * KIB, 1), shim.allocate(100 * KIB, 1)
    ctypes.memset(first, 7, 100 * KIB)
    shim.free(first)
    assert ctypes.string_at(first, 100 * KIB) == b"\xdb" * (100 * KIB)
    shim.free(second)
    shim.trim(1)


def test_a_door_is_passed_without_an_allocation() -> None:
    job = shim.job_begin(0)
    shim.thread_enter(job, 0)
    try:
        done = []
        for _ in range(4):
            shim.iteration_mark(job)
            shim.iteration_door()
            found = doors.progress(job)
            done.append(found and int(found.iterations))
            shim.iteration_door()  # nothing has ended since
            shim.free(shim.allocate(KIB, job))
        assert done == [None, 1, 2, 3]  # the first mark ends the set-up
        found = doors.progress(job)
        assert found and found.work == pytest.approx(4, abs=0.01) and found.now_ns > 0 and not found.waits
        assert found.usual == (shim.pool_state().held_bytes, 1)
    finally:
        shim.thread_leave()
        shim.job_end(job)


sizes = st.one_of(
    st.integers(1, 4 * KIB),
    st.integers(4 * KIB, 64 * KIB),
    st.integers(64 * KIB, MIB),
    st.integers(MIB, 12 * MIB),
)


class Heap(RuleBasedStateMachine):
    """No overlap, no loss, held never above the budget, one free range when all is freed."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks: list[tuple[int, int, int, int]] = []  # sorted: address, bytes, account, tag
        self.tag = 0

    @rule(count=sizes, account=st.integers(0, 2))
    def allocate(self, count: int, account: int) -> None:
        try:
            address = shim.allocate(count, account)
        except library.NativeError:
            pool = shim.pool_state()
            # Refused only where its pages really don't fit: small blocks come in slabs of up to 512 KiB, and
            # a region may need one page more than it fills.
            assert pool.held_bytes + max(count, SLAB) + 2 * PAGE > pool.budget_bytes
            return
        assert address % 64 == 0
        assert shim.owner(address) == account
        at = bisect_left(self.blocks, (address, 0, 0, 0))
        if at > 0:
            before, length, _, _ = self.blocks[at - 1]
            assert before + length <= address
        if at < len(self.blocks):
            assert address + count <= self.blocks[at][0]
        self.tag = self.tag % 255 + 1
        ctypes.memset(address, self.tag, count)
        self.blocks.insert(at, (address, count, account, self.tag))

    @precondition(lambda self: self.blocks)
    @rule(data=st.data())
    def free(self, data: st.DataObject) -> None:
        self._free(data.draw(st.integers(0, len(self.blocks) - 1)))

    @rule(account=st.integers(0, 2))
    def trim(self, account: int) -> None:
        shim.trim(account)

    @rule(pages=st.integers(BUDGET // PAGE // 4, BUDGET // PAGE))
    def change_the_budget(self, pages: int) -> None:
        before = shim.pool_state()
        try:
            shim.budget_set(pages * PAGE)
        except library.NativeError:
            assert pages * PAGE < before.held_bytes
            assert shim.pool_state().budget_bytes == before.budget_bytes
        else:
            assert shim.pool_state().budget_bytes == pages * PAGE

    @invariant()
    def within_the_budget(self) -> None:
        shim.check()
        live = sum(count for _, count, _, _ in self.blocks)
        pool = shim.pool_state()
        assert live <= pool.held_bytes <= pool.budget_bytes

    def teardown(self) -> None:
        while self.blocks:
            self._free(-1)
        for account in range(3):
            shim.trim(account)
        shim.budget_set(BUDGET)
        state = shim.pool_state()
        assert state.held_bytes == 0
        assert state.free_ranges == 1

    def _free(self, index: int) -> None:
        address, count, _, tag = self.blocks.pop(index)
        content = ctypes.string_at(address, count)
        assert content == bytes([tag]) * count
        shim.free(address)


Heap.TestCase.settings = settings(max_examples=60, stateful_step_count=60, deadline=None)
TestHeap = Heap.TestCase
