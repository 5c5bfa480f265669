"""Autocast with one weight used at each time step: its casts are kept, and their gradient summed in bfloat16."""

import torch

torch.manual_seed(31)
cell = torch.nn.Linear(48, 48)
optimizer = torch.optim.SGD(cell.parameters(), lr=0.1)
for step in range(12):
    hidden = torch.randn(16, 48)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        for _ in range(10):
            hidden = torch.tanh(cell(hidden))
        loss = hidden.float().square().mean()
        with torch.no_grad(), torch.autocast("cpu", enabled=False):
            norm = cell.weight.norm()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item(), norm.item(), cell.weight.grad.double().sum().item())
