"""Autocast with one weight used at each time step: its casts are kept, and their gradient summed in bfloat16."""

import os

import torch

device = torch.device(os.environ.get("DEVICE", "cpu"))

torch.manual_seed(31)
cell = torch.nn.Linear(48, 48).to(device)
optimizer = torch.optim.SGD(cell.parameters(), lr=0.1)
for step in range(12):
    hidden = torch.randn(16, 48, device=device)
    with torch.autocast(device.type, dtype=torch.bfloat16):
        for _ in range(10):
            hidden = torch.tanh(cell(hidden))
        loss = hidden.float().square().mean()
        with torch.no_grad(), torch.autocast(device.type, enabled=False):
            norm = cell.weight.norm()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item(), norm.item(), cell.weight.grad.double().sum().item())
