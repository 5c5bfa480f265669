"""Training whose batch doubles at step 10, so that what was profiled no longer holds."""

import argparse

import torch

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--steps", type=int, default=30)
parser.add_argument("--batch-size", type=int, default=4096)
args = parser.parse_args()
torch.manual_seed(0)

model = torch.nn.Sequential(*[torch.nn.Linear(512, 512) for _ in range(8)])
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(args.steps):
    rows = args.batch_size * (1 if step < 10 else 2)
    loss = model(torch.randn(rows, 512)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step} loss {loss.item()!r}")
