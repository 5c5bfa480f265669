"""Captures a CUDA graph again and again, and replays each: a capture that another job breaks is an error. That is
between the forward and the backward pass of a small step, for an iteration is what jobs have beside each other.
"""

import sys

import torch
from options import parse, scaled, tell

args = parse(__doc__)
width = scaled(args, 512)
weight = torch.randn(width, width, device=args.device) / width**0.5
source = torch.randn(width, width, device=args.device)
scale = torch.ones(width, device=args.device, requires_grad=True)
optimizer = torch.optim.SGD([scale], lr=0.1)
print("warm", (source @ weight).shape)  # cuBLAS makes its handle here: it may not within a capture
for step in range(args.steps):
    loss = (scale * 2).square().mean()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        made = source
        for _ in range(200):
            made = torch.tanh(made @ weight + step)
    graph.replay()
    tell(f"sum {step}", made.sum().item())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    tell(f"loss {step}", loss.item())
print(f"peak_bytes {torch.cuda.max_memory_reserved()}", file=sys.stderr)
