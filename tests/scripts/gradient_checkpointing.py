"""Checkpointed blocks with dropout: the forward pass is repeated with the same random numbers."""

import os

import torch
from torch.utils.checkpoint import checkpoint, checkpoint_sequential

device = torch.device(os.environ.get("DEVICE", "cpu"))

torch.manual_seed(9)
blocks = torch.nn.Sequential(
    *[torch.nn.Sequential(torch.nn.Linear(32, 32), torch.nn.Dropout(0.3), torch.nn.Tanh()) for _ in range(4)]
).to(device)
optimizer = torch.optim.SGD(blocks.parameters(), lr=0.1)
for step in range(5):
    x = torch.randn(16, 32, device=device, requires_grad=True)
    y = x
    for block in blocks:
        y = checkpoint(block, y, use_reentrant=step % 2 == 0)
    y = checkpoint_sequential(blocks, 2, y, use_reentrant=False)
    loss = y.pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item(), x.grad.sum().item())
