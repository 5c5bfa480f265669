"""Takes gigabytes in each iteration and gives them back: `alternates.py DEVICE ROWS STEPS`. Its peak comes last."""

import sys

import torch

device, rows, steps = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
torch.manual_seed(rows)
layers = [part for _ in range(7) for part in (torch.nn.Linear(1024, 1024), torch.nn.Tanh())]
model = torch.nn.Sequential(*layers).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(steps):
    loss = model(torch.randn(rows, 1024, device=device)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item(), flush=True)
if device.startswith("cuda"):
    print("peak_bytes", torch.cuda.max_memory_reserved(), file=sys.stderr)
