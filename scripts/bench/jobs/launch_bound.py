"""Many small operations: the interpreter and its lock are the bottleneck, not arithmetic.

The forward pass keeps `--depth` activations of `--rows` x 64 floats; nothing is computed for long.
"""

import argparse

import torch

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--steps", type=int, default=100)
parser.add_argument("--depth", type=int, default=400)
parser.add_argument("--rows", type=int, default=256)
parser.add_argument("--device", default="cpu")
args = parser.parse_args()
torch.manual_seed(0)

scale = torch.nn.Parameter(torch.ones(64, device=args.device))
optimizer = torch.optim.SGD([scale], lr=1e-3)
for step in range(args.steps):
    x = torch.randn(args.rows, 64, device=args.device)
    for _ in range(args.depth):
        x = torch.sin(x * scale)
    loss = x.square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step} loss {loss.item()!r}")
