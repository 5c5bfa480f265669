"""CUDA's virtual memory management: what it allows, what it costs, what it waits for."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ..checks import CannotCheck, Seen, check
from ..device import GIB, MIB, ready, spin, tensor_at, wall_s
from ..driver import Driver, DriverError
from ..later import torch

DRIVER = ("driver",)
CHUNKS_MIB = (2, 4, 8, 16, 20, 32, 64)
PER_SIZE = 4 * GIB
SPIN_MS = 300


def opened() -> Driver:
    ready()
    return Driver()


@contextmanager
def refusal(seen: Seen, claim: str) -> Iterator[None]:
    """What the statement says is possible, and the driver refuses, refutes it."""
    try:
        yield
    except DriverError as error:
        seen.figure("refused", str(error))
        seen.claim(claim, False)


@check("The granularity of physical memory is 2 MiB, the recommended one as well.", rank=1, libraries=DRIVER)
def granularity_is_2_mib(seen: Seen) -> None:
    driver = opened()
    sizes = {"minimum": driver.granularity(), "recommended": driver.granularity(recommended=True)}
    seen.figure("bytes", sizes)
    seen.claim("the minimum", sizes["minimum"] == 2 * MIB)
    seen.claim("the recommended", sizes["recommended"] == 2 * MIB)


@check(
    "The costs of mapping follow the number of chunks, not the bytes: a GiB in chunks of 32 MiB costs less than half "
    "of a GiB in chunks of 2 MiB to create, allow and unmap; one access call for a range is cheaper than one for each.",
    rank=1,
    limit_s=60,
    libraries=DRIVER,
)
def mapping_costs_follow_the_chunks(seen: Seen) -> None:
    driver = opened()
    driver.chunk_costs(2 * MIB, 8)
    costs = {}
    for chunk in CHUNKS_MIB:
        count = min(512, PER_SIZE // (chunk * MIB))
        costs[chunk] = {**driver.chunk_costs(chunk * MIB, count), "chunks": count}
        seen.figure(f"mean_us, {chunk} MiB", costs[chunk])
    steps = ("create", "access", "unmap")
    per_gib = {c: sum(costs[c][step] for step in steps) * 1024 / c for c in CHUNKS_MIB}
    seen.figure("create, access and unmap, us per GiB", {str(c): us for c, us in per_gib.items()})
    seen.claim("32 MiB costs less than half of 2 MiB", per_gib[32] < per_gib[2] / 2)
    whole, each = costs[2]["access_range"], costs[2]["access"] * costs[2]["chunks"]
    seen.claim("one access call is cheaper", whole < each)


@check(
    "Address space of 64 times the device's memory can be reserved, in less than a second.",
    rank=1,
    libraries=DRIVER,
)
def large_reservations_are_free(seen: Seen) -> None:
    driver = opened()
    total = torch.cuda.get_device_properties(0).total_memory
    size = 64 * (total // GIB + 1) * GIB
    made: list[int] = []
    with refusal(seen, "it is not refused"):
        took = wall_s(lambda: made.append(driver.reserve(size)))
    if not made:
        return
    seen.figure("reserve_ms", 1000 * took)
    seen.figure("bytes", size)
    seen.figure("free_ms", 1000 * wall_s(lambda: driver.call("unreserve", made[0], size)))
    seen.claim("in less than a second", took < 1)


def stale_reads(one: Any, other: Any) -> int:
    """How often what is written at one address is not read at the other, with an event in between."""
    writer, reader = torch.cuda.Stream(), torch.cuda.Stream()
    sums = []
    for turn in range(200):
        at = (one, other) if turn % 2 else (other, one)
        with torch.cuda.stream(reader):
            at[1].sum()  # what was there before may lie in the caches
        writer.wait_stream(reader)
        with torch.cuda.stream(writer):
            at[0].fill_(turn)
        reader.wait_stream(writer)
        with torch.cuda.stream(reader):
            sums.append((at[1] != turn).sum())
    torch.cuda.synchronize()
    return sum(int(one.item()) > 0 for one in sums)


@check(
    "One handle can be mapped at two addresses, and what is written at one is read at the other, in the order "
    "of events.",
    rank=1,
    libraries=DRIVER,
)
def one_handle_at_two_addresses(seen: Seen) -> None:
    driver = opened()
    size = 32 * MIB
    handle, at = driver.chunk(size), []
    with refusal(seen, "neither address is refused"):
        at = [driver.mapped(size, handle) for _ in range(2)]
    if not at:
        return
    one, other = (tensor_at(address, size) for address in at)
    seen.claim("the addresses differ", one.data_ptr() != other.data_ptr())
    wrong = stale_reads(one, other)
    seen.figure("stale_reads_of_200", wrong)
    seen.claim("no read is stale", wrong == 0)


@check("A part of a handle can't be mapped: cuMemMap refuses an offset other than 0.", libraries=DRIVER)
def no_part_of_a_handle(seen: Seen) -> None:
    driver = opened()
    page = driver.granularity()
    handle, at = driver.chunk(2 * page), driver.reserve(2 * page)
    try:
        driver.call("chunk_map", at, page, page, handle)
        seen.claim("it is refused", False)
    except DriverError as error:
        seen.figure("refused", str(error))
        seen.claim("it is refused", True)


@check(
    "Chunks that lie side by side in addresses are one range: a tensor over several handles works.",
    libraries=DRIVER,
)
def tensors_span_handles(seen: Seen) -> None:
    driver = opened()
    size, count = 2 * MIB, 16
    base = driver.reserve(size * count)
    allowed = False
    with refusal(seen, "mapping side by side is not refused"):
        for index in range(count):
            driver.call("chunk_map", base + index * size, size, 0, driver.chunk(size))
        driver.call("chunk_allow", base, size * count)
        allowed = True
    if not allowed:
        return
    numbers = tensor_at(base, size * count)
    numbers.copy_(torch.arange(numbers.numel(), device="cuda"))
    expected = torch.arange(numbers.numel(), device="cuda", dtype=torch.float32)
    seen.claim("what is written is read", bool((numbers == expected).all()))
    factor = numbers[: 2048 * 2048].view(2048, 2048).fill_(1)
    seen.claim("a matrix product is right", bool(((factor @ factor) == 2048).all()))


def beside_a_spin_ms(work: Callable[[], Any]) -> float:
    """Milliseconds that `work` takes on the CPU while a kernel of SPIN_MS runs."""
    torch.cuda.synchronize()
    with torch.cuda.stream(torch.cuda.Stream()):
        spin(SPIN_MS)
    return 1000 * wall_s(work)


@check(
    "Creating, mapping, allowing and unmapping of memory that no kernel uses doesn't wait for kernels.",
    rank=1,
    libraries=DRIVER,
)
def mapping_does_not_wait_for_kernels(seen: Seen) -> None:
    driver = opened()
    size = 32 * MIB
    base = driver.reserve(size)
    handles: list[int] = []
    steps: dict[str, Callable[[], Any]] = {
        "create": lambda: handles.append(driver.chunk(size)),
        "map": lambda: driver.call("chunk_map", base, size, 0, handles[0]),
        "access": lambda: driver.call("chunk_allow", base, size),
        "unmap": lambda: driver.call("chunk_unmap", base, size),
        "release": lambda: driver.call("chunk_release", handles[0]),
        "reserve": lambda: driver.reserve(size),
    }
    for name, step in steps.items():
        took = beside_a_spin_ms(step)
        seen.figure(f"{name}_ms", took)
        seen.claim(f"{name} does not wait", took < SPIN_MS / 3)


@check(
    "cuMemUnmap does not wait for pending work on what it unmaps: it must be gated on events.",
    rank=1,
    libraries=DRIVER,
)
def unmap_does_not_wait_for_its_users(seen: Seen) -> None:
    driver = opened()
    size = 32 * MIB
    handle = driver.chunk(size)
    base = driver.mapped(size, handle)
    numbers = tensor_at(base, size)
    torch.cuda.synchronize()
    spin(SPIN_MS)
    numbers.fill_(1)
    took = 1000 * wall_s(lambda: driver.call("chunk_unmap", base, size))
    # Mapped again at once, so that the fill, which is still to come if nothing has waited, finds its memory.
    again = 1000 * wall_s(lambda: driver.call("chunk_map", base, size, 0, handle))
    again += 1000 * wall_s(lambda: driver.call("chunk_allow", base, size))
    seen.figure("unmap_ms", took)
    seen.figure("map_and_access_ms", again)
    seen.claim("it does not wait", took < SPIN_MS / 3)
    torch.cuda.synchronize()
    seen.figure("fill_after_it_was_right", bool((numbers == 1).all()))


@check(
    "A chunk of the driver costs less than a cudaMalloc of its size, and cudaFree waits for running kernels.",
    libraries=DRIVER,
)
def cudamalloc_costs(seen: Seen) -> None:
    driver = opened()
    driver.malloc_costs(2 * MIB, 4)
    for size in (2, 32, 256):
        seen.figure(f"cudaMalloc_us, {size} MiB", driver.malloc_costs(size * MIB, 16))
    alloc = driver.malloc_costs(32 * MIB, 16)["alloc"]
    costs = driver.chunk_costs(32 * MIB, 16)
    chunk = costs["create"] + costs["map"] + costs["access"]
    seen.figure("chunk_us, 32 MiB", chunk)
    seen.claim("a chunk costs less", chunk < alloc)
    at = driver.alloc(32 * MIB)
    waits = {
        "alloc": beside_a_spin_ms(lambda: driver.alloc(32 * MIB)),
        "free": beside_a_spin_ms(lambda: driver.call("device_free", at)),
    }
    seen.figure("beside_a_kernel_of_300_ms_ms", waits)
    seen.claim("cudaFree waits", waits["free"] > SPIN_MS / 2)


@check(
    "A chunk counts in the device's memory from its creation on, before it is mapped, until it is released.",
    libraries=DRIVER,
)
def chunks_count_from_their_creation(seen: Seen) -> None:
    driver = opened()
    free = torch.cuda.mem_get_info
    before = free()[0]
    if before < 2 * GIB:
        raise CannotCheck(f"only {before} bytes are free")
    handle = driver.chunk(GIB)
    created = free()[0]
    driver.call("chunk_release", handle)
    released = free()[0]
    seen.figure("taken_bytes", before - created)
    seen.figure("back_bytes", released - created)
    seen.claim("taken when created", before - created >= GIB)
    seen.claim("back when released", released - created >= GIB)
