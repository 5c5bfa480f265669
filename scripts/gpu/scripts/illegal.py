"""Reads past what is mapped, after some good steps: an illegal address, by an array of somebody else's that says it is
larger than it is."""

import torch
from options import parse, tell
from torch import nn

args = parse(__doc__, steps=10)
model = nn.Linear(64, 64).to(args.device)
for step in range(args.steps):
    model(torch.randn(4096, 64, device=args.device)).square().mean().backward()
    torch.cuda.synchronize()
    tell("step", step)


class Larger:
    """4 TiB, of which 4 KiB are there."""

    def __init__(self) -> None:
        self.there = torch.zeros(1024, device=args.device)
        where = {"data": (self.there.data_ptr(), False), "shape": (1 << 40,)}
        self.__cuda_array_interface__ = {**where, "typestr": "<f4", "version": 2}


far = torch.as_tensor(Larger(), device=args.device)[-1024:]
(far + 1).sum().item()
tell("not", "reached")
