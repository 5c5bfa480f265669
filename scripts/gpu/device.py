"""Work for a GPU whose duration is known, and what threads and clocks need around it."""

import threading
import time
from collections.abc import Callable
from functools import cache
from typing import Any

from .later import torch

MIB, GIB = 1 << 20, 1 << 30


def wall_s(work: Callable[[], Any]) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def synchronised_s(work: Callable[[], Any]) -> float:
    """Seconds from an idle device until it is idle again."""
    torch.cuda.synchronize()
    return wall_s(lambda: (work(), torch.cuda.synchronize()))


@cache
def cycles_per_ms() -> float:
    """Of the spinning kernel, once the clocks are up."""
    cycles = 20_000_000
    for _ in range(10):
        torch.cuda._sleep(cycles)
    return cycles / (1000 * synchronised_s(lambda: torch.cuda._sleep(cycles)))


def spin(ms: float) -> None:
    """Queue a kernel of one thread that takes about `ms` on the current stream, and return."""
    torch.cuda._sleep(int(ms * cycles_per_ms()))


def ready() -> None:
    """Everything that the first use of a device would make slow has happened.

    A kernel is loaded at its first launch, which may wait for what runs: those used beside a spin are launched here.
    """
    torch.cuda.init()
    cycles_per_ms()
    numbers = torch.zeros(1 << 20, device="cuda").fill_(1).add_(1)
    torch.empty_like(numbers).copy_(numbers)
    bool((numbers == 2).all())
    numbers[:8].add_(1).sum().item()
    torch.cuda.synchronize()


def error_of(work: Callable[[], Any]) -> Exception | None:
    """What `work` raised, or None."""
    try:
        work()
    except Exception as error:
        return error
    return None


def told(error: Exception | None) -> str:
    """An error in one line, for a figure."""
    return "nothing" if error is None else f"{type(error).__name__}: {' '.join(str(error).split())[:160]}"


def in_threads(*works: Callable[[], Any]) -> list[Any]:
    """Run each in a thread of its own, all at once; what they returned. The first error is raised here."""
    results: list[Any] = [None] * len(works)
    errors: list[BaseException] = []

    def run(index: int) -> None:
        try:
            results[index] = works[index]()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(index,)) for index in range(len(works))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return results


class Memory:
    """Device memory at an address, for `torch.as_tensor`. Whoever makes it keeps the memory."""

    def __init__(self, address: int, size_bytes: int) -> None:
        shape = (size_bytes // 4,)
        self.__cuda_array_interface__ = {
            "shape": shape,
            "typestr": "<f4",
            "data": (address, False),
            "version": 2,
        }


def tensor_at(address: int, size_bytes: int) -> Any:
    """A float32 tensor over device memory."""
    return torch.as_tensor(Memory(address, size_bytes), device="cuda")
