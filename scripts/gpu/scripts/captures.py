"""Captures a CUDA graph again and again, and replays each: a capture that another job breaks is an error."""

import sys

import torch
from options import parse, scaled, tell

args = parse(__doc__)
width = scaled(args, 512)
weight = torch.randn(width, width, device=args.device) / width**0.5
source = torch.randn(width, width, device=args.device)
print("warm", (source @ weight).shape)  # cuBLAS makes its handle here: it may not within a capture
for step in range(args.steps):
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        made = source
        for _ in range(200):
            made = torch.tanh(made @ weight + step)
    graph.replay()
    tell(f"sum {step}", made.sum().item())
print(f"peak_bytes {torch.cuda.max_memory_reserved()}", file=sys.stderr)
