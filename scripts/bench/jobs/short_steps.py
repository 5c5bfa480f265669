"""Iterations of about 10 ms: where the cost of hooks, doors and isolation would show.

With `--busy` nothing but Python, to be beside it.
"""

import argparse
import time

import torch

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--steps", type=int, default=1000)
parser.add_argument("--busy", action="store_true")
parser.add_argument("--seconds", type=float, default=15)
args = parser.parse_args()

if args.busy:
    end, count = time.monotonic() + args.seconds, 0
    while time.monotonic() < end:
        count += sum(range(100))
else:
    torch.manual_seed(0)
    model = torch.nn.Sequential(*[torch.nn.Linear(256, 256) for _ in range(8)])
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    x = torch.randn(128, 256)
    for step in range(args.steps):
        if step == args.steps // 5:
            begin = time.monotonic()  # past the profile
        loss = model(x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    seconds = time.monotonic() - begin
    print(f"{seconds / (args.steps - args.steps // 5) * 1000:.4f} ms per iteration")
