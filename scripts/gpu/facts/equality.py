"""Whether numbers are the same bit for bit, wherever their memory lies and whatever runs beside them."""

import copy
from collections.abc import Callable
from typing import Any

from ..checks import Seen, check
from ..device import MIB, in_threads, ready
from ..later import torch

STEPS = 30
SIZES = ((512, 512, 512), (64, 1000, 300), (4096, 64, 1024))


def placed(values: Any, offset: int) -> Any:
    """A copy of a matrix that begins `offset` bytes after a large alignment."""
    size = values.element_size()
    room = torch.empty(values.numel() * size + 4 * MIB, dtype=torch.uint8, device="cuda")
    begin = -room.data_ptr() % (2 * MIB) + offset
    place = room[begin : begin + values.numel() * size].view(values.dtype).view(values.shape)
    return place.copy_(values)


def product(left: Any, right: Any, bias: Any, offset: int) -> Any:
    return torch.addmm(placed(bias, offset), placed(left, offset), placed(right, offset))


def offsets_that_differ(dtype: Any) -> list[int]:
    """The offsets at which some product is not what it is at offset 0."""
    found = set()
    for rows, inner, columns in SIZES:
        left, right = torch.randn(rows, inner), torch.randn(inner, columns)
        factors = [one.cuda().to(dtype) for one in (left, right, torch.randn(columns))]
        expected = product(*factors, 0)
        found |= {
            o for o in (16, 64, 256, 512, 1536, 65536) if not torch.equal(product(*factors, o), expected)
        }
    return sorted(found)


@check(
    "Matrix products are bit for bit the same wherever their memory begins, if that is a multiple of 512 bytes."
)
def products_do_not_depend_on_addresses(seen: Seen) -> None:
    ready()
    for dtype in (torch.float32, torch.bfloat16):
        offsets = offsets_that_differ(dtype)
        seen.figure(f"offsets that differ, {dtype}", offsets)
        seen.claim(f"multiples of 512 do not differ, {dtype}", not [o for o in offsets if o % 512 == 0])


def dense() -> Any:
    layers: list[Any] = []
    for _ in range(4):
        layers += [torch.nn.Linear(512, 512), torch.nn.LayerNorm(512), torch.nn.GELU()]
    return torch.nn.Sequential(*layers)


def convolutional() -> Any:
    layers: list[Any] = [torch.nn.Conv2d(8, 32, 3)]
    for _ in range(4):
        layers += [torch.nn.BatchNorm2d(32), torch.nn.ReLU(), torch.nn.Conv2d(32, 32, 3, padding=1)]
    return torch.nn.Sequential(*layers)


def job(make: Callable[[], Any], shape: tuple[int, ...], seed: int) -> Callable[[], list[float]]:
    """A job that trains on a stream of its own, and returns its losses. What is random comes from the CPU."""
    torch.manual_seed(seed)
    network, data = make(), torch.randn(shape)

    def run() -> list[float]:
        stream = torch.cuda.Stream()
        with torch.autograd.set_multithreading_enabled(False), torch.cuda.stream(stream):
            return losses(network, data)

    return run


def losses(network: Any, data: Any) -> list[float]:
    """The losses of a copy of a network, trained on the current stream."""
    trained, inputs = copy.deepcopy(network).cuda(), data.cuda()
    optimizer = torch.optim.Adam(trained.parameters(), lr=1e-3)
    found = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = trained(inputs).square().mean()
        loss.backward()
        optimizer.step()
        found.append(loss.detach())
    return [float(one.item()) for one in found]


@check(
    "A job beside another, a thread and a stream each, has bit for bit the losses that it has alone, where it has the "
    "same ones twice when it is alone.",
    rank=1,
    limit_s=60,
)
def losses_beside_another_are_equal(seen: Seen) -> None:
    ready()
    kinds = {"dense": (dense, (256, 512)), "convolutional": (convolutional, (16, 8, 32, 32))}
    for name, (make, shape) in kinds.items():
        jobs = [job(make, shape, seed) for seed in (1, 2)]
        alone, again = ([in_threads(one)[0] for one in jobs] for _ in range(2))
        beside = [in_threads(*jobs) for _ in range(3)]
        seen.figure(f"{name}: alone twice the same", alone == again)
        seen.figure(f"{name}: first and last loss", [alone[0][0], alone[0][-1]])
        seen.figure(f"{name}: equal beside, of 3", sum(one == alone for one in beside))
        seen.claim(f"{name}: equal beside another", alone != again or all(one == alone for one in beside))
