"""Nanoseconds of an allocation plus its free by torch's allocator, whichever that is here.

By `torch.empty` and `del`, and on a GPU by `torch.cuda.caching_allocator_alloc` and `caching_allocator_delete` too. Of
each of --sizes, a block at a time; and of each --replay, a file with a JSON list of [block, bytes] in order, where 0
bytes are the block's free and blocks that are left are freed at the end. Each the median of --rounds; between two
rounds an iteration of a small model, as training jobs have them.

Written to --out, as JSON: `empty` and `raw` with ns for each size (as text) and each file (its name without suffix),
and `python`: the same loops with tensors of no bytes, which no allocator is asked for. `raw_why` instead of `raw` where
that can't be. `calls`: ns of what Python calls and no allocator has part in, `clock`, and on a GPU `device`, the
question which one is current.
"""

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import torch

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--device", default="cpu")
parser.add_argument("--model-device", help="of the model; else --device, which may have no kernels")
parser.add_argument("--sizes", type=int, nargs="*", default=[])
parser.add_argument("--replay", type=Path, nargs="*", default=[])
parser.add_argument("--rounds", type=int, default=15)
parser.add_argument("--repeats", type=int, default=200, help="of a size, in a round")
parser.add_argument("--out", type=Path, required=True)
args = parser.parse_args()

Take, Give = Callable[[int], Any], Callable[[Any], None]
device = torch.device(args.device)
model_device = torch.device(args.model_device or args.device)
model = torch.nn.Linear(64, 64).to(model_device)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
logs: dict[str, list[tuple[int, int]]] = {file.stem: json.loads(file.read_text()) for file in args.replay}


def iterate() -> None:
    loss = model(torch.ones(64, 64, device=model_device)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    loss.item()


def empty(size: int) -> torch.Tensor:
    return torch.empty(size, dtype=torch.uint8, device=device)


def nothing(_: int) -> torch.Tensor:
    return torch.empty(0, dtype=torch.uint8, device=device)


def let_go(_: Any) -> None:
    """What the caller had is freed when it has no name any more."""


def one_size(size: int, take: Take, give: Give) -> float:
    begin = time.perf_counter_ns()
    for _ in range(args.repeats):
        block = take(size)
        give(block)
        del block
    return (time.perf_counter_ns() - begin) / args.repeats


def replay(events: list[tuple[int, int]], take: Take, give: Give) -> float:
    blocks: dict[int, Any] = {}
    count = 0
    begin = time.perf_counter_ns()
    for block, size in events:
        if size:
            blocks[block] = take(size)
            count += 1
        else:
            give(blocks.pop(block))
    while blocks:
        give(blocks.popitem()[1])
    return (time.perf_counter_ns() - begin) / max(1, count)


def settle() -> None:
    """What was freed until now has passed on the device too."""
    if device.type == "cuda":
        torch.cuda.synchronize()


def medians(take: Take, give: Give) -> dict[str, float]:
    """The first two rounds do not count: they fill the allocator's cache, and are a job's profile."""
    found: dict[str, list[float]] = {}
    for _ in range(2 + args.rounds):
        iterate()
        for size in args.sizes:
            settle()
            found.setdefault(str(size), []).append(one_size(size, take, give))
        for name, events in logs.items():
            settle()
            found.setdefault(name, []).append(replay(events, take, give))
    return {name: median(values[2:]) for name, values in found.items()}


def calls() -> dict[str, float]:
    asked: dict[str, Callable[[], object]] = {"clock": time.monotonic_ns}
    if device.type == "cuda":
        asked["device"] = torch._C._cuda_getDevice
    return {name: call_ns(call) for name, call in asked.items()}


def call_ns(call: Callable[[], object]) -> float:
    found = []
    for _ in range(args.rounds):
        begin = time.perf_counter_ns()
        for _ in range(args.repeats):
            call()
        found.append((time.perf_counter_ns() - begin) / args.repeats)
    return median(found)


results: dict[str, Any] = {"empty": medians(empty, let_go), "python": medians(nothing, let_go)}
results["calls"] = calls()
if device.type != "cuda":
    results["raw_why"] = "torch.cuda.caching_allocator_alloc needs a GPU"
else:
    try:
        results["raw"] = medians(torch.cuda.caching_allocator_alloc, torch.cuda.caching_allocator_delete)
    except RuntimeError as error:
        results["raw_why"] = str(error).splitlines()[0]
args.out.write_text(json.dumps(results))
