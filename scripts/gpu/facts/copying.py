"""Copying out of the device and back."""

from collections.abc import Callable
from typing import Any

from ..checks import Seen, check
from ..device import GIB, ready, synchronised_s, wall_s
from ..later import torch


def gb_per_s(copy: Callable[[], Any]) -> float:
    """The best of three copies of a GiB."""
    return GIB / min(synchronised_s(copy) for _ in range(3)) / 1e9


@check("Copying out to pinned memory is at least twice as fast as to pageable memory.")
def pinned_copies_are_faster(seen: Seen) -> None:
    ready()
    inside = torch.ones(GIB, dtype=torch.uint8, device="cuda")
    kinds = {"pageable": torch.zeros(GIB, dtype=torch.uint8)}
    made: list[Any] = []
    seen.figure(
        "pinning_a_GiB_s", wall_s(lambda: made.append(torch.zeros(GIB, dtype=torch.uint8, pin_memory=True)))
    )
    kinds["pinned"] = made[0]
    out = {name: gb_per_s(lambda o=outside: o.copy_(inside)) for name, outside in kinds.items()}
    back = {name: gb_per_s(lambda o=outside: inside.copy_(o)) for name, outside in kinds.items()}
    seen.figure("out_GB_per_s", out)
    seen.figure("back_GB_per_s", back)
    seen.claim("twice as fast", out["pinned"] >= 2 * out["pageable"])
