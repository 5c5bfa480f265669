"""Iterations of some seconds: the gradients of many batches, each of a size of its own, add up before a step.

Each size makes oneDNN build new kernels, in the middle of the iteration, while another job may fork.
"""

import argparse

import torch
from torch import nn

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--iterations", type=int, default=20)
parser.add_argument("--batches", type=int, default=400, help="in an iteration")
args = parser.parse_args()
torch.manual_seed(0)

model = nn.Sequential(
    nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Conv2d(8, 8, 3), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 1)
)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for iteration in range(args.iterations):
    total = torch.zeros(())
    for batch in range(args.batches):
        side = 12 + (iteration * 37 + batch) % 97
        total = total + model(torch.randn(4, 3, side, side)).square().mean() / args.batches
    optimizer.zero_grad()
    total.backward()
    optimizer.step()
    print(f"iteration {iteration} loss {total.item()!r}")
