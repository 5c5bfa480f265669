"""Reads data that it keeps, most of what it holds, and trains a small network on parts of it."""

import argparse

import torch
from torch import nn

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--mib", type=int, default=32, help="of data")
parser.add_argument("--steps", type=int, default=60)
args = parser.parse_args()
torch.manual_seed(args.seed)
data = torch.randn(args.mib << 10, 256)
labels = torch.randint(10, (len(data),))
model = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))
optimizer = torch.optim.Adam(model.parameters())
for step in range(args.steps):
    chosen = torch.randint(len(data), (2048,))
    loss = nn.functional.cross_entropy(model(data[chosen]), labels[chosen])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, repr(loss.item()))
