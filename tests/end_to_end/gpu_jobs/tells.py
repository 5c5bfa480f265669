"""Says who is set aside, as the scheduler does under `auto`: `tells.py DEVICE`. Jobs 2 and 3 in turn, then nobody."""

import sys
import time

import torch

from gpushare.native import doors

device = sys.argv[1]
torch.manual_seed(1)
model = torch.nn.Linear(64, 64).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
inputs = torch.randn(64, 64, device=device)
away: set[int] = set()
for step in range(200):
    if step % 20 == 10:
        doors.aside_set([2] if step % 40 == 10 else [3])
    optimizer.zero_grad()
    model(inputs).square().mean().backward()
    optimizer.step()
    away.update(doors.copied_out())
    time.sleep(0.02)
print("away", sorted(away))
doors.aside_set([])
