"""Fails on the device: an index out of range, after some good steps."""

import torch
from options import parse, tell
from torch import nn

args = parse(__doc__, steps=10)
table = nn.Embedding(10, 64).to(args.device)
for step in range(args.steps):
    index = torch.randint(10, (4096,), device=args.device)
    table(index).square().mean().backward()
    torch.cuda.synchronize()
    tell("step", step)
table(torch.full((4096,), 1000, device=args.device)).sum().item()
tell("not", "reached")
