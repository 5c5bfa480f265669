"""Symbols of torch that a library loaded before it takes over."""

import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable
from ctypes import c_int64, c_void_p
from typing import Any

from .. import libraries
from ..checks import CannotCheck, Seen, check
from ..device import in_threads, ready
from ..later import torch

SEEDS = (11, 22)
ROUNDS = 20
SYMBOLS = {
    "alloc_cpu": "_ZN3c109alloc_cpuEm",
    "free_cpu": "_ZN3c108free_cpuEPv",
    "default CPU generator": "_ZN2at6detail22getDefaultCPUGeneratorEv",
    "default CUDA generator": "_ZN2at4cuda6detail23getDefaultCUDAGeneratorEa",
    "global context": "_ZN2at13globalContextEv",
    "default dtype": "_ZN3c1017get_default_dtypeEv",
}
LIBRARIES = ("c10", "torch_cpu", "torch_cuda", "torch_python")
BY_LINKAGE = ("R_X86_64_JUMP_SLO", "R_X86_64_GLOB_DAT", "R_AARCH64_JUMP_SL", "R_AARCH64_GLOB_DA")


def preloaded() -> Any:
    library = libraries.load("preload")
    for name in ("preload_allocations", "preload_frees", "preload_generator_calls"):
        getattr(library, name).restype = c_int64
    library.set_thread_generator.argtypes = [c_void_p]
    return library


def attention(dtype: Any) -> Any:
    query = torch.ones(2, 4, 128, 64, device="cuda", dtype=dtype)
    return torch.nn.functional.scaled_dot_product_attention(query, query, query, dropout_p=0.3)


def draws() -> dict[str, Callable[[], Any]]:
    """Operators that take random numbers from the device's default generator."""
    numbers = torch.full((4096,), 0.5, device="cuda")
    return {
        "randn": lambda: torch.randn(4096, device="cuda"),
        "rand": lambda: torch.rand(4096, device="cuda"),
        "randint": lambda: torch.randint(1000, (4096,), device="cuda"),
        "randperm": lambda: torch.randperm(50_000, device="cuda"),
        "bernoulli": lambda: torch.bernoulli(numbers),
        "normal_": lambda: torch.empty(4096, device="cuda").normal_(),
        "exponential_": lambda: torch.empty(4096, device="cuda").exponential_(),
        "multinomial": lambda: torch.multinomial(numbers, 64),
        "dropout": lambda: torch.nn.functional.dropout(numbers, 0.5),
        "dropout_in_place": lambda: torch.nn.functional.dropout(numbers.clone(), 0.5, inplace=True),
        "rrelu": lambda: torch.nn.functional.rrelu(-numbers, training=True),
        "attention_bf16": lambda: attention(torch.bfloat16),
        "attention_fp32": lambda: attention(torch.float32),
    }


def drawn() -> dict[str, list[Any]]:
    """Several draws of each kind, kinds mixed, on a stream of this thread's own."""
    found: dict[str, list[Any]] = {}
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.default_stream())
    with torch.cuda.stream(stream):
        for _ in range(ROUNDS):
            for name, draw in draws().items():
                found.setdefault(name, []).append(draw())
    stream.synchronize()
    return found


def drawn_with_own_generator(library: Any, seed: int) -> dict[str, list[Any]]:
    generator = torch.Generator("cuda")
    generator.manual_seed(seed)
    library.set_thread_generator(generator._cdata)
    try:
        return drawn()
    finally:
        library.set_thread_generator(None)


def drawn_alone(seed: int) -> dict[str, list[Any]]:
    torch.cuda.manual_seed(seed)
    return drawn()


def same(one: list[Any], other: list[Any]) -> bool:
    return all(torch.equal(a, b) for a, b in zip(one, other, strict=True))


@check(
    "A library loaded before torch takes over getDefaultCUDAGenerator: with a generator per thread, two threads that "
    "draw at the same time (random tensors, dropout, fused attention) get bit for bit what each gets alone.",
    rank=1,
    limit_s=60,
    preload=("preload",),
)
def cuda_generator_is_taken_over(seen: Seen) -> None:
    library = preloaded()
    ready()
    alone = [drawn_alone(seed) for seed in SEEDS]
    offset = torch.cuda.default_generators[0].get_offset()
    beside = in_threads(*(lambda seed=seed: drawn_with_own_generator(library, seed) for seed in SEEDS))
    seen.figure("calls", library.preload_generator_calls())
    seen.claim("the symbol is called", library.preload_generator_calls() > 0)
    seen.claim(
        "the process's generator is left alone", torch.cuda.default_generators[0].get_offset() == offset
    )
    for name in alone[0]:
        equal = all(same(one[name], two[name]) for one, two in zip(alone, beside, strict=True))
        seen.claim(f"{name} is equal", equal)
    differ = not torch.equal(alone[0]["randn"][0], alone[1]["randn"][0])
    seen.claim("the two seeds differ", differ)


@check(
    "Such a library serves the memory of CPU tensors as well, pinned memory aside.",
    rank=3,
    preload=("preload",),
)
def cpu_allocation_is_taken_over(seen: Seen) -> None:
    library = preloaded()
    allocations, frees = library.preload_allocations(), library.preload_frees()
    numbers = torch.ones(100_000)
    seen.claim("an allocation arrives", library.preload_allocations() == allocations + 1)
    seen.claim("aligned to 64 bytes", numbers.data_ptr() % 64 == 0)
    del numbers
    seen.claim("its free arrives", library.preload_frees() == frees + 1)


def linkage(library: str) -> Counter[str]:
    """How many relocations by name a library has for each of SYMBOLS."""
    file = libraries.torch_folder() / "lib" / f"lib{library}.so"
    if not file.is_file():
        raise CannotCheck(f"{file.name} is not in torch's lib folder")
    found: Counter[str] = Counter()
    names = {symbol: name for name, symbol in SYMBOLS.items()}
    with subprocess.Popen(["readelf", "-rW", str(file)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        for line in process.stdout:
            match = re.search(r"(R_\w+) .* (_Z\w+)", line)
            if match and match[1].startswith(BY_LINKAGE) and match[2] in names:
                found[names[match[2]]] += 1
    return found


@check(
    "torch's libraries reach alloc_cpu, the default generators, the global context and the default dtype by name, even "
    "in the library that defines them, so that they can be taken over.",
    limit_s=60,
)
def symbols_are_reached_by_name(seen: Seen) -> None:
    if not shutil.which("readelf"):
        raise CannotCheck("readelf is not there")
    found = {library: linkage(library) for library in LIBRARIES}
    seen.figure("relocations", {library: dict(counts) for library, counts in found.items()})
    for name, library in (
        ("alloc_cpu", "c10"),
        ("free_cpu", "c10"),
        ("default CPU generator", "torch_cpu"),
        ("default CUDA generator", "torch_cuda"),
        ("global context", "torch_cpu"),
        ("default dtype", "c10"),
    ):
        seen.claim(f"{name} in {library}", found[library][name] > 0)
