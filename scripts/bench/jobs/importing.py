"""Training that imports a module in the middle whose body allocates; two of these want the same import lock.

The module, `allocating_module`, is written by the benchmark and found on PYTHONPATH.
"""

import argparse
import importlib

import torch

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--steps", type=int, default=20)
args = parser.parse_args()
torch.manual_seed(0)

model = torch.nn.Sequential(*[torch.nn.Linear(512, 512) for _ in range(8)])
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(args.steps):
    hidden = model(torch.randn(4096, 512))
    if step == args.steps // 2:
        hidden = hidden * importlib.import_module("allocating_module").table.mean()
    loss = hidden.square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step} loss {loss.item()!r}")
